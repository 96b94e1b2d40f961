"use strict";
// What all plots share: the data of the page, names as text, colours, axes and `draw`.
const drawing = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const count = data.sizes.length;
  const numbers = data.sizes.map((_, k) => k + 1);
  const isNamed = data.labels.some((label, k) => label !== String(k + 1));
  const narrow = () => window.innerWidth < 600;

  // Plotly interprets markup in labels: escape it, so that names are shown unchanged.
  const plain = (name) => name.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const cut = (name, length) => (name.length > length ? name.slice(0, length - 1) + "…" : name);
  const percent = (share) => Number((100 * share).toPrecision(3)) + "%";

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // The name of component k, counted from 0, or its number.
  const title = (k) =>
    (data.labels[k] === String(k + 1) ? `component ${k + 1}` : plain(data.labels[k]));

  // Ticks of an axis of components: their names, if some have one, or numbers.
  function components() {
    if (!isNamed) return whole(count);
    return { tickvals: numbers, ticktext: data.labels.map((label) => plain(cut(label, 16))) };
  }

  // Place at most 16 ticks, all at whole numbers up to `largest`.
  function whole(largest) {
    const step = [1, 2, 5, 10, 20, 50].find((s) => largest / s <= (narrow() ? 8 : 16)) || 100;
    return { tick0: step, dtick: step };
  }

  function draw(id, traces, layout) {
    const line = { gridcolor: colour("--line"), zerolinecolor: colour("--line"), automargin: true };
    const axes = Object.fromEntries(
      ["xaxis", "yaxis", "yaxis2"]
        .filter((axis) => axis !== "yaxis2" || layout.yaxis2)
        .map((axis) => [axis, { ...line, ...layout[axis] }]),
    );
    return Plotly.react(at(id), traces, {
      width: at(id).clientWidth,
      height: 380,
      margin: { l: 60, r: 20, t: 20, b: 50 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("--text") },
      hoverlabel: {
        bgcolor: colour("--panel"), bordercolor: colour("--line"), align: "left",
        font: { color: colour("--text") },
      },
      dragmode: narrow() ? false : "zoom",
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      ...layout,
      ...axes,
    }, { displayModeBar: false });
  }

  return { data, at, numbers, isNamed, narrow, plain, cut, percent, colour, title, components, whole, draw };
})();
