// Chooses among the results of a comparison what keeps the limits of a reader, by the rule of the grid: the most
// accurate of what beats nothing sent.

// A loss is an epsilon and the delta with which it holds, in words.
const written = ([epsilon, delta]) => `ε ${epsilon.toLocaleString("en", { maximumSignificantDigits: 4 })}${delta}`;

// What keeps an offer from being taken; empty if nothing does.
function obstacle(offer, limits) {
  const loss = offer.losses[limits.protect], spent = offer[limits.carried];
  if (Object.values(offer.losses).every((each) => each === null)) return "no ε is proved";
  if (loss === null) return "no such ε is proved";
  if (loss === undefined) return offer.hides ? "hides the item set, too" : "reveals the item set";
  if (offer.trust > limits.trust) return "needs more trust";
  if (loss[0] > limits.epsilon * (1 + 1e-9)) return written(loss);
  if (limits.bytes && !(spent <= limits.bytes)) return "more bytes";
  return "";
}

// An offer as it does with so many users: with the largest number that was run and is not above, if any was.
function measured(offer, users) {
  if (!users || !offer.points) return offer;
  const run = offer.points.findLast((point) => point.users <= users) ?? offer.points[0];
  return { ...offer, ...run, better: offer.crossing !== null && users >= offer.crossing };
}

function decide(offers, limits) {
  const asked = offers.filter((offer) => !limits.protocol || offer.name === limits.protocol)
    .map((offer) => measured(offer, limits.users))
    .sort((one, other) => other.better - one.better || one.key - other.key);
  const inside = asked.filter((offer) => !obstacle(offer, limits));
  return { taken: inside.find((offer) => offer.better), nearest: inside[0], outside: asked[0] };
}

const form = document.querySelector(".decision");
if (form) {
  const { start, base, users, offers } = JSON.parse(document.querySelector("#offers").textContent);
  const { trust, protocol, protect, epsilon, bytes, carried } = form.elements, people = form.elements.users;
  const headline = document.querySelector("table.headline"), verdict = form.querySelector(".verdict");

  const limits = () => ({
    trust: trust.selectedIndex,
    protocol: protocol.value,
    protect: protect.value,
    epsilon: +epsilon.value,
    bytes: +bytes.value,
    carried: carried.value,
    users: +people.value,
  });

  // What goes before a name, the name, and what goes after it.
  function sentence({ taken, nearest, outside }, asked) {
    const offer = taken ?? nearest ?? outside, run = offer?.users ?? users;
    const other = run && asked.users && asked.users !== run, counted = `${run?.toLocaleString("en")} users`;
    const needed = offer?.needed ? ` To beat ${offer.over} takes ${offer.needed} users.` : "";
    const needs = (other || offer?.of ? ` Measured with ${counted}${offer.of ?? ""}.` : "") + needed;
    if (taken) return ["Take ", taken.name, ` at ${written(taken.losses[asked.protect])}: ${taken.says}.${needs}`];
    if (nearest && asked.users > run) {
      return [`With ${counted}${offer.of ?? ""}, `, "send nothing", `: the nearest, ${nearest.name}, reaches ${nearest.says}. `
        + `It was not run with more.${needed}`];
    }
    if (nearest) return ["", "Send nothing", `${offer.users ? "" : base}: the nearest, ${nearest.name}, reaches ${nearest.says}.${needs}`];
    if (asked.protocol && offer) return ["Not ", offer.name, ` (${obstacle(offer, asked)}): it reaches ${offer.says}.${needs}`];
    return ["", "No protocol", " here is proved to keep these limits."];
  }

  // The row of what is taken, from the table of all results if the headline has the protocol at another budget.
  function mark(row, asked) {
    for (const copy of headline.querySelectorAll("[data-copy]")) copy.remove();
    for (const line of headline.tBodies[0].rows) {
      const offer = offers.find((each) => each.row === line.dataset.of), own = offer && measured(offer, asked.users);
      const out = own && (obstacle(own, asked) || (own.better ? "" : "not better than nothing sent"));
      line.classList.toggle("out", Boolean(out));
      line.classList.remove("taken");
      line.cells[0].dataset.why = out ?? "";
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
    if (!form.checkValidity()) return;
    const asked = limits(), decided = decide(offers, asked), [before, name, after] = sentence(decided, asked);
    const strong = Object.assign(document.createElement("strong"), { textContent: name });
    verdict.replaceChildren(before, strong, after);
    mark(decided.taken?.row, asked);
  }

  // The limits are in the address, so that a link leads to an answer and the way back to the one before it.
  function restore() {
    if (location.hash && !location.hash.includes("=")) return;
    const given = { carried: "messages", ...start, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
    for (const field of form.elements) {
      field.value = given[field.name] ?? "";
      if (field.selectedIndex < 0) field.selectedIndex = 0;
    }
    answer();
  }
  form.addEventListener("input", answer);
  form.addEventListener("change", () => {
    if (form.checkValidity()) {
      location.hash = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    }
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", restore);
  form.hidden = false;
  restore();
}
