"use strict";
(() => {
  const runs = JSON.parse(document.getElementById("data").textContent);
  const ink = getComputedStyle(document.body).color;
  const axis = (extra) => Object.assign({ stroke: ink, grid: { stroke: "rgba(128,128,128,.2)" }, ticks: { stroke: "rgba(128,128,128,.3)" } }, extra);

  // Tables: a click on a heading sorts by it, a second one the other way round.
  function sort(table, head) {
    const place = [...head.parentNode.children].indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.children[place].dataset.sort ?? row.children[place].textContent.trim();
    const number = (text) => (text !== "" && isFinite(text) ? Number(text) : null);
    const rows = [...table.tBodies[0].rows].sort((one, other) => {
      const [a, b] = [key(one), key(other)], [x, y] = [number(a), number(b)];
      return x !== null && y !== null ? x - y : a.localeCompare(b, undefined, { numeric: true });
    });
    if (down) rows.reverse();
    table.tBodies[0].append(...rows);
  }
  for (const table of document.querySelectorAll("table.sortable"))
    for (const head of table.tHead.rows[0].cells) {
      head.tabIndex = 0;
      head.addEventListener("click", () => sort(table, head));
      head.addEventListener("keydown", (event) => event.key === "Enter" && sort(table, head));
    }

  // Times are shown in UTC and with 24 hours, whatever the reader's machine is set to.
  const seconds = (text) => Date.parse(text.replace(/(\.\d{3})\d*/, "$1") + "Z") / 1000;
  const iso = (stamp) => new Date(stamp * 1000).toISOString();
  const ticks = (_, stamps, __, ___, step) => {
    let day = "";
    return stamps.map((stamp) => {
      const text = iso(stamp), shown = text.slice(11, step < 1 ? 21 : step < 60 ? 19 : 16);
      const fresh = text.slice(0, 10) !== day;
      day = text.slice(0, 10);
      return fresh ? shown + "\n" + day : shown;
    });
  };
  const percent = (value) => (value == null ? null : value * 100);
  const told = (unit) => (_, value) => (value == null ? "–" : +value.toPrecision(4) + unit);

  function timeline(holder, run) {
    const pieces = run.timeline;
    const lines = [
      { label: "waiting", scale: "requests", unit: "", stroke: "#d9822b", fill: "rgba(217,130,43,.18)", values: (p) => p.waiting_count },
      { label: "running", scale: "requests", unit: "", stroke: "#4f8cc9", values: (p) => p.running_count },
      { label: "KV cache", scale: "%", unit: " %", stroke: "#cf4a40", dash: [6, 3], values: (p) => percent(p.kv_cache_usage_ratio) },
      { label: "GPU", scale: "%", unit: " %", stroke: "#3a9a5b", dash: [2, 2], dots: true, values: (p) => percent(p.sm_ratio) },
      { label: "generated", scale: "tokens/s", unit: " tokens/s", stroke: "#8d7fc4", dash: [1, 2], values: (p) => p.generation_tps },
    ].filter((line) => pieces.some((piece) => line.values(piece) != null));
    const stamps = pieces.map((piece) => seconds(piece.from_ts)).concat(seconds(pieces.at(-1).to_ts));
    const column = (line) => pieces.concat(pieces.at(-1)).map((piece) => line.values(piece) ?? null);
    const range = (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.05];
    const used = ["requests", "%", "tokens/s"].filter((scale) => lines.some((line) => line.scale === scale));
    const size = () => ({ width: holder.clientWidth, height: 270 });
    const plot = new uPlot({
      ...size(),
      tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1000), "Etc/UTC"),
      series: [{ label: "UTC", value: (_, stamp) => (stamp == null ? "–" : iso(stamp).slice(0, 19).replace("T", " ")) }].concat(
        lines.map((line) => ({ label: line.label, scale: line.scale, stroke: line.stroke, fill: line.fill, dash: line.dash, width: 2, spanGaps: false, points: { show: line.dots === true, size: 4 }, paths: uPlot.paths.stepped({ align: 1 }), value: told(line.unit) }))),
      scales: { "%": { range: [0, 105] }, requests: { range }, "tokens/s": { range } },
      axes: [axis({ values: ticks, space: 90 })].concat(
        used.map((scale, place) => axis({ scale, label: scale, labelSize: 20, side: place ? 1 : 3, size: 56, grid: { show: !place, stroke: "rgba(128,128,128,.2)" } }))),
      hooks: { draw: [(drawn) => align(drawn, holder.nextElementSibling)] },
    }, [stamps, ...lines.map(column)], holder);
    addEventListener("resize", () => plot.setSize(size()));
  }

  // The lane below a plot stands under its area, not under its axes.
  function align(plot, lane) {
    if (!lane?.classList.contains("lane")) return;
    lane.style.marginLeft = plot.over.offsetLeft + "px";
    lane.style.marginRight = plot.root.clientWidth - plot.over.offsetLeft - plot.over.offsetWidth + "px";
  }

  function curve(holder, run) {
    const points = [...run.length_points].sort((one, other) => one.input_tokens - other.input_tokens);
    const data = [points.map((point) => point.input_tokens), points.map((point) => point.ttft_s)];
    const series = [{ label: "prompt tokens", value: told("") }, { label: "TTFT", stroke: "#4f8cc9", paths: () => null, points: { show: true, size: 5 }, value: told(" s") }];
    const fit = run.curve[0];
    if (fit?.slope_low_s > 0) {
      data.push(data[0].map((tokens) => fit.intercept_s + (fit.slope_s_per_1k_tokens * tokens) / 1000));
      series.push({ label: "fit", stroke: "#d9822b", width: 1, points: { show: false }, value: told(" s") });
    }
    const size = () => ({ width: holder.clientWidth, height: 270 });
    const axes = [axis({ label: "prompt tokens", labelSize: 20 }), axis({ label: "TTFT, s", labelSize: 20, size: 56 })];
    const plot = new uPlot({ ...size(), series, scales: { x: { time: false } }, axes }, data, holder);
    addEventListener("resize", () => plot.setSize(size()));
  }

  for (const holder of document.querySelectorAll(".plot.timeline")) timeline(holder, runs[holder.dataset.run]);
  for (const holder of document.querySelectorAll(".plot.curve")) curve(holder, runs[holder.dataset.run]);
  document.documentElement.dataset.ready = "yes";
})();
