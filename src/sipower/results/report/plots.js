"use strict";
(() => {
  const { data, at, numbers, isNamed, narrow, plain, cut, percent, colour, title, components, whole, draw } =
    drawing;

  // Place about six ticks at powers of ten; for up to two powers Plotly chooses the ticks.
  function powers(values) {
    const exponents = values.filter((value) => value > 0).map(Math.log10);
    const span = Math.max(...exponents) - Math.min(...exponents);
    return span > 2 ? { dtick: Math.ceil(span / 6) } : {};
  }

  function drawConvergence() {
    const against = at("convergence-against").value;
    const curves = data.convergence;
    const curve = (y, name, tint, symbol, dash) => ({
      x: curves[against], y, name, mode: "lines+markers", connectgaps: true,
      line: { color: tint, dash }, marker: { symbol, size: 7 },
      hovertemplate: `%{y:.3g} at %{x:.4g} ${against}<extra>${name}</extra>`,
    });
    return draw("convergence-plot", [
      curve(curves.excess, "KL divergence above its lowest value", colour("--accent"), "circle", "solid"),
      curve(curves.gap, "certified gap", colour("--warm"), "square", "dash"),
    ], {
      xaxis: { title: { text: against }, rangemode: "tozero" },
      yaxis: {
        title: { text: "share of the sum of the counts" }, type: "log", exponentformat: "power",
        ...powers([...curves.excess, ...curves.gap]),
      },
    });
  }

  function drawSizes() {
    return draw("size-plot", [{
      type: "bar", x: numbers, y: data.sizes, marker: { color: data.colours },
      hovertext: numbers.map((k) => title(k - 1)),
      hovertemplate: "%{hovertext}: %{y:.2%} of the counts<extra></extra>",
    }], {
      height: 260,
      xaxis: { title: { text: "component" }, ...components() },
      yaxis: { title: { text: "share of the counts" }, tickformat: ".0~%" },
    });
  }

  function drawQuality() {
    const { npmi, exclusivity } = data.quality;
    return draw("quality-plot", [{
      x: npmi, y: exclusivity, mode: "markers+text", cliponaxis: false,
      text: data.labels.map((label) => plain(cut(label, 12))), textposition: "top center",
      marker: { color: data.colours, size: 11, line: { width: 1, color: colour("--text") } },
      hovertext: npmi.map((value, k) => `${title(k)}<br>NPMI ${value}, exclusivity ${exclusivity[k]}`),
      hovertemplate: "%{hovertext}<extra></extra>",
    }], {
      xaxis: { title: { text: "coherence (NPMI)" } },
      yaxis: { title: { text: "exclusivity" }, tickformat: ".0~%" },
    });
  }

  function drawFeatures() {
    const k = Number(at("feature-component").value);
    const top = data.features[k][at("feature-rank").value];
    const places = top.names.map((_, i) => i);
    const hover = top.names.map((name, i) =>
      `${plain(name)}<br>in the component ${percent(top.probability[i])}, overall ` +
      `${percent(top.overall[i])}<br>lift ×${top.lift[i]}`);
    const tip = { text: hover, hovertemplate: "%{text}<extra></extra>" };
    return draw("feature-plot", [
      {
        type: "bar", orientation: "h", name: title(k), x: top.probability, y: places,
        marker: { color: data.colours[k] }, textposition: "none", ...tip,
      },
      {
        mode: "markers", name: "overall", x: top.overall, y: places,
        marker: { symbol: "line-ns", size: 12, line: { width: 2, color: colour("--text") } }, ...tip,
      },
    ], {
      height: 120 + 21 * Math.max(places.length, 3),
      xaxis: { title: { text: "probability" }, tickformat: ".1~%", rangemode: "tozero" },
      yaxis: {
        tickvals: places, ticktext: top.names.map((name) => plain(cut(name, narrow() ? 16 : 40))),
        range: [places.length - 0.4, -0.6], showgrid: false, zeroline: false,
      },
    });
  }

  function sampleOrder(by) {
    const samples = data.samples;
    if (by === "similar") return samples.similar;
    const order = samples.names.map((_, i) => i);
    if (by === "file") return order;
    const share = samples.shares[Number(by)];
    return order.sort((i, j) => share[j] - share[i] || i - j);
  }

  // Return the name of a sample and its three largest shares as text.
  function sampleLabel(i) {
    const parts = data.samples.shares.map((share, k) => [share[i] / data.samples.whole, k]);
    const largest = parts.filter(([share]) => share > 0).sort((a, b) => b[0] - a[0]).slice(0, 3);
    const lines = largest.map(([share, k]) => `${title(k)}: ${percent(share)}`);
    return [plain(data.samples.names[i]), ...(lines.length ? lines : ["no counts"])].join("<br>");
  }

  function drawSamples() {
    const { names, shares, whole: unit } = data.samples;
    const order = sampleOrder(at("sample-order").value);
    const last = order.length - 1;
    // A step line draws each sample as a bar; two extra points extend both ends by half a bar.
    const x = [-0.5, ...order.keys(), last + 0.5];
    const padded = [order[0], ...order, order[last]];
    const bars = shares.map((share, k) => ({
      x, y: padded.map((i) => share[i] / unit), name: title(k), stackgroup: "all",
      mode: "lines", line: { shape: "hvh", width: 0, color: data.colours[k] },
      fillcolor: data.colours[k], hoverinfo: "skip",
    }));
    // An invisible line shows one label per sample, whatever the height of the pointer.
    const label = {
      x: [...order.keys()], y: order.map(() => 0.5), text: order.map(sampleLabel), mode: "lines",
      line: { width: 0 }, hovertemplate: "%{text}<extra></extra>",
    };
    const few = order.length <= 30;
    return draw("sample-plot", [...bars, label], {
      showlegend: false,
      hovermode: "closest",
      hoverdistance: -1,
      xaxis: {
        title: { text: "samples" }, range: [-0.5, last + 0.5], zeroline: false, showgrid: false,
        showticklabels: few, tickvals: few ? [...order.keys()] : [],
        ticktext: few ? order.map((i) => plain(cut(names[i], 16))) : [],
      },
      yaxis: { title: { text: "share of the counts" }, range: [0, 1], tickformat: ".0%" },
    });
  }

  function drawMatrix(id, z, what, scale, range) {
    const size = Math.min(at(id).clientWidth, 560);
    const places = z.map((_, i) => i + 1);
    const ticks = what === "component" ? components() : whole(z.length);
    const axis = { title: { text: what }, showgrid: false, zeroline: false, ...ticks };
    return draw(id, [{
      type: "heatmap", x: places, y: places, z, colorscale: scale, zmin: range[0], zmax: range[1],
      hoverongaps: false, colorbar: { thickness: 12, outlinewidth: 0 },
      text: isNamed && what === "component"
        ? z.map((row, i) => row.map((_, j) => `${title(j)} and ${title(i)}`))
        : z.map((row, i) => row.map((_, j) => `${what}s ${j + 1} and ${i + 1}`)),
      hovertemplate: "%{text}: %{z:.2f}<extra></extra>",
    }], {
      height: size,
      xaxis: { ...axis, constrain: "domain" },
      yaxis: { ...axis, autorange: "reversed", scaleanchor: "x", constrain: "domain" },
    });
  }

  function drawCorrelations() {
    const scale = [[0, "#0072b2"], [0.5, colour("--neutral")], [1, "#d55e00"]];
    const z = data.correlations[at("correlation-over").value];
    return drawMatrix("correlation-plot", z, "component", scale, [-1, 1]);
  }

  function drawRank() {
    const { ranks, deviance, stability, best } = data.rank;
    const mean = deviance.map((row) => row.reduce((a, b) => a + b, 0) / row.length);
    const dots = deviance.flatMap((row, i) => row.map((value) => [ranks[i], value]));
    const tint = colour("--accent");
    return draw("rank-plot", [
      {
        x: dots.map((d) => d[0]), y: dots.map((d) => d[1]), mode: "markers", name: "replicates",
        marker: { color: tint, opacity: 0.4, size: 6 }, hovertemplate: "%{x}: %{y:.5g}<extra></extra>",
      },
      {
        x: ranks, y: mean, mode: "lines+markers", name: "held-out deviance", line: { color: tint },
        hovertemplate: "%{x} components: %{y:.5g}<extra></extra>",
      },
      {
        x: ranks, y: stability, mode: "lines+markers", name: "stability", yaxis: "y2",
        line: { color: colour("--warm"), dash: "dash" }, marker: { symbol: "square" },
        hovertemplate: "%{x} components: %{y:.3f}<extra></extra>",
      },
    ], {
      margin: { l: 60, r: 60, t: 20, b: 50 },
      xaxis: { title: { text: "number of components" } },
      yaxis: { title: { text: "held-out KL divergence per count" } },
      yaxis2: {
        title: { text: "stability" }, overlaying: "y", side: "right", range: [0, 1.05],
        dtick: 0.2, showgrid: false,
      },
      annotations: [{
        x: best, yref: "paper", y: 1, xanchor: "left", showarrow: false, text: `recommended: ${best}`,
      }],
      shapes: [{
        type: "line", x0: best, x1: best, yref: "paper", y0: 0, y1: 1,
        line: { color: colour("--quiet"), width: 2, dash: "dot" },
      }],
    });
  }

  function drawStability() {
    return draw("stability-plot", [{
      type: "bar", x: data.consensus.stability.map((_, k) => k + 1), y: data.consensus.stability,
      marker: { color: colour("--accent") },
      hovertext: data.consensus.stability.map((_, k) => title(k)),
      hovertemplate: "%{hovertext}: %{y:.3f}<extra></extra>",
    }], {
      height: 260,
      xaxis: { title: { text: "component" }, ...components() },
      yaxis: { title: { text: "mean cosine" }, range: [0, 1] },
    });
  }

  // Show the rows of the chosen contrast only.
  function showDifferences() {
    const chosen = at("difference-contrast").value;
    for (const row of document.querySelectorAll("#difference-table tbody tr")) {
      row.hidden = row.dataset.contrast !== chosen;
    }
  }

  function drawDifferences() {
    const contrast = Number(at("difference-contrast").value);
    const { plots, components: first, level } = data.differences;
    const top = plots[contrast];
    const places = top.names.map((_, i) => i);
    showDifferences();
    return draw("difference-plot", [{
      mode: "markers", x: top.mean, y: places, marker: { color: data.colours[first[contrast]], size: 8 },
      error_x: {
        type: "data", symmetric: false, array: top.mean.map((x, i) => top.upper[i] - x),
        arrayminus: top.mean.map((x, i) => x - top.lower[i]), color: colour("--text"), thickness: 1.2, width: 3,
      },
      text: top.names.map((name, i) =>
        `${plain(name)}<br>${top.mean[i].toFixed(2)} (${top.lower[i].toFixed(2)} to ${top.upper[i].toFixed(2)})` +
        `<br>local false sign rate ${plain(top.lfsr[i])}`),
      hovertemplate: "%{text}<extra></extra>",
    }], {
      height: 120 + 21 * Math.max(places.length, 3),
      xaxis: {
        title: { text: `log2 fold change, ${percent(level)} interval` }, rangemode: "tozero",
        zeroline: true, zerolinecolor: colour("--text"), zerolinewidth: 1.5, visible: places.length > 0,
      },
      yaxis: {
        tickvals: places, ticktext: top.names.map((name) => plain(cut(name, narrow() ? 16 : 40))),
        range: [Math.max(places.length, 1) - 0.4, -0.6], showgrid: false, zeroline: false,
      },
      annotations: places.length ? [] : [{
        xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false,
        text: "no feature with a rate of at most 0.05",
      }],
    });
  }

  const drawSimilarity = () =>
    drawMatrix("similarity-plot", data.consensus.similarity, "replicate", "Cividis", [0, 1]);

  const PLOTS = {
    "convergence-plot": drawConvergence, "size-plot": drawSizes, "feature-plot": drawFeatures,
    "quality-plot": drawQuality, "sample-plot": drawSamples, "correlation-plot": drawCorrelations, "rank-plot": drawRank,
    "stability-plot": drawStability, "similarity-plot": drawSimilarity,
    "difference-plot": drawDifferences,
  };
  const CONTROLS = {
    "convergence-against": drawConvergence, "feature-component": drawFeatures,
    "feature-rank": drawFeatures, "sample-order": drawSamples, "correlation-over": drawCorrelations,
    "difference-contrast": drawDifferences,
  };

  function drawAll() {
    for (const [id, drawIt] of Object.entries(PLOTS)) if (at(id)) drawIt();
  }

  for (const [id, drawIt] of Object.entries(CONTROLS)) {
    if (at(id)) at(id).addEventListener("change", drawIt);
  }
  drawAll();
  let width = window.innerWidth;
  let pause;
  window.addEventListener("resize", () => {
    clearTimeout(pause);
    pause = setTimeout(() => {
      if (window.innerWidth === width) return; // a phone's address bar changes only the height
      width = window.innerWidth;
      drawAll();
    }, 150);
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
