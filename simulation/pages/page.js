// Sorts a table by the column whose header is clicked: ascending first, cells without a value last.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const headers = [...table.querySelectorAll("thead th")];
  headers.forEach((header, column) => {
    const button = header.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
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

// What a link leads to is unfolded, with everything around it.
const reveal = () => {
  const target = document.querySelector(":target");
  const folded = [];
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
