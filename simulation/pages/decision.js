// Shows the answer to the question that a reader has chosen: each has its place in a table that the page holds.

const form = document.querySelector(".decision");
if (form) {
  const { answers, places } = JSON.parse(document.querySelector("#answers").textContent);
  const headline = document.querySelector("table.headline"), verdict = form.querySelector(".verdict");

  // The row of what is taken, from the table of all results if the headline has the protocol at another budget.
  function mark(row, out) {
    for (const copy of headline.querySelectorAll("[data-copy]")) copy.remove();
    for (const line of headline.tBodies[0].rows) {
      line.classList.toggle("out", line.dataset.of in out);
      line.classList.remove("taken");
      line.cells[0].dataset.why = out[line.dataset.of] ?? "";
    }
    if (!row) return;
    let line = headline.querySelector(`[data-of="${CSS.escape(row)}"]`);
    if (!line) {
      line = document.getElementById(row).cloneNode(true);
      line.removeAttribute("id");
      Object.assign(line.dataset, { of: row, copy: "" });
      [...line.cells].slice(headline.rows[0].cells.length).forEach((cell) => cell.remove());
      headline.tBodies[0].prepend(line);
    }
    line.classList.add("taken");
  }

  function answer() {
    const place = [...form.elements].reduce((before, field) => before * field.length + field.selectedIndex, 0);
    const { verdict: [before, name, after], row, out } = answers[places[place]];
    verdict.replaceChildren(before, Object.assign(document.createElement("strong"), { textContent: name }), after);
    mark(row, out);
  }

  // The question is in the address, so that a link leads to an answer and the way back to the one before it.
  function restore() {
    if (location.hash && !location.hash.includes("=")) return;
    form.reset();
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const field of form.elements) {
      const option = [...field.options].find((each) => each.value === asked.get(field.name));
      if (option) option.selected = true;
    }
    answer();
  }
  form.addEventListener("change", () => {
    location.hash = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    answer();
  });
  addEventListener("hashchange", restore);
  form.hidden = false;
  restore();
}
