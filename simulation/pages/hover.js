// Shows what a figure knows of the places near the pointer, or near a tap. The tables hold the same values.
const bubble = document.createElement("div");
bubble.className = "bubble";
bubble.hidden = true;
document.body.append(bubble);

const NEAR = 14, MOST = 4;

function shown(event) {
  const figure = event.target.closest?.(".plot");
  if (!figure) return [];
  const distances = [...figure.querySelectorAll("[data-shows]")].map((place) => {
    const { x, y, width, height } = place.getBoundingClientRect();
    return [Math.hypot(x + width / 2 - event.clientX, y + height / 2 - event.clientY), place.dataset.shows];
  });
  const near = distances.filter(([distance]) => distance < NEAR).sort(([one], [other]) => one - other);
  return [...new Set(near.map(([, line]) => line))].slice(0, MOST);
}

function show(event) {
  const lines = shown(event);
  bubble.hidden = !lines.length;
  if (bubble.hidden) return;
  bubble.replaceChildren(...lines.map((words) => Object.assign(document.createElement("p"), { textContent: words })));
  const { offsetWidth, offsetHeight } = bubble;
  const left = Math.min(event.clientX + 12, document.documentElement.clientWidth - offsetWidth - 8);
  const below = event.clientY + 16;
  const top = below + offsetHeight < innerHeight ? below : event.clientY - offsetHeight - 12;
  bubble.style.left = `${Math.max(8, left) + scrollX}px`;
  bubble.style.top = `${top + scrollY}px`;
}

addEventListener("pointermove", show);
addEventListener("pointerdown", show);
addEventListener("keydown", (event) => {
  if (event.key === "Escape") bubble.hidden = true;
});
