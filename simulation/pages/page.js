// Sorts a table by the column whose header is clicked: ascending first, cells without a value last.
for (const table of document.querySelectorAll("table")) {
  const headers = [...table.querySelectorAll("thead th")];
  headers.forEach((header, column) => {
    header.querySelector("button")?.addEventListener("click", () => {
      const descending = header.getAttribute("aria-sort") === "ascending";
      for (const other of headers) other.setAttribute("aria-sort", "none");
      header.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value;
      const compare = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
        const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
        return descending ? -order : order;
      };
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
    });
  });
}

// Filters the rows of a large table, and chooses its columns.
for (const table of document.querySelectorAll("table[data-shown]")) {
  const tools = table.parentElement.querySelector(".tools"), rows = [...table.tBodies[0].rows];
  const words = rows.map((row) => row.textContent.toLowerCase()), filter = tools.querySelector("[type=search]");
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase().split(/\s+/);
    rows.forEach((row, place) => {
      row.hidden = !wanted.every((word) => words[place].includes(word));
    });
    tools.querySelector("output").value = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  });
  tools.querySelectorAll("[type=checkbox]").forEach((box, place) => {
    const choose = () => {
      for (const row of table.rows) row.cells[place + 1].classList.toggle("off", !box.checked);
    };
    box.addEventListener("change", choose);
    choose();
  });
  tools.hidden = false;
}

// What a link leads to is unfolded, with everything around it.
const reveal = () => {
  const target = document.querySelector(":target"), folded = [];
  if (target) target.hidden = false;
  for (let around = target?.closest("details"); around; around = around.parentElement.closest("details")) {
    if (!around.open) folded.push(around);
  }
  for (const around of folded) around.open = true;
  if (folded.length) target.scrollIntoView();
};
addEventListener("load", reveal);
addEventListener("hashchange", reveal);
addEventListener("click", (event) => {
  // A second click on a link changes no address, and the first one changes it later.
  if (event.target.closest('a[href^="#"]')) setTimeout(reveal);
});

// Paper cannot be unfolded.
const unfolded = [];
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.open = true;
    unfolded.push(folded);
  }
});
addEventListener("afterprint", () => {
  for (const folded of unfolded.splice(0)) folded.open = false;
});
