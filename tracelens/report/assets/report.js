"use strict";
(() => {
  const runs = JSON.parse(document.getElementById("data").textContent);
  const ink = getComputedStyle(document.body).color;
  const axis = (extra) => Object.assign({ stroke: ink, grid: { stroke: "rgba(128,128,128,.2)" }, ticks: { stroke: "rgba(128,128,128,.3)" } }, extra);

  // Tables: a click on a heading sorts by it, a second one the other way round.
  for (const table of document.querySelectorAll("table.sortable")) {
    table.tHead.addEventListener("click", (event) => {
      const head = event.target.closest("th");
      if (!head) return;
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
    });
  }

  const seconds = (text) => Date.parse(text.replace(/(\.\d{3})\d*/, "$1") + "Z") / 1000;
  const percent = (value) => (value == null ? null : value * 100);

  function timeline(holder, run) {
    const pieces = run.timeline;
    const lines = [
      { label: "waiting", scale: "count", stroke: "#d9822b", fill: "rgba(217,130,43,.15)", values: (p) => p.waiting_count },
      { label: "running", scale: "count", stroke: "#4f8cc9", values: (p) => p.running_count },
      { label: "KV cache %", scale: "%", stroke: "#b3261e", dash: [6, 3], values: (p) => percent(p.kv_cache_usage_ratio) },
      { label: "GPU %", scale: "%", stroke: "#3a9a5b", dash: [2, 2], values: (p) => percent(p.sm_ratio) },
      { label: "generated tokens/s", scale: "tokens", stroke: "#7c6fb0", values: (p) => p.generation_tps },
    ].filter((line) => pieces.some((piece) => line.values(piece) != null));
    const data = [pieces.map((piece) => seconds(piece.from_ts)), ...lines.map((line) => pieces.map((piece) => line.values(piece) ?? null))];
    const options = {
      width: holder.clientWidth, height: 260, tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1000), "Etc/UTC"),
      series: [{ label: "UTC" }, ...lines.map((line) => ({ label: line.label, scale: line.scale, stroke: line.stroke, fill: line.fill, dash: line.dash, width: 2, spanGaps: false }))],
      scales: { "%": { range: [0, 100] }, count: { range: (_, low, high) => [0, Math.max(high, 1)] }, tokens: { range: (_, low, high) => [0, Math.max(high, 1)] } },
      axes: [axis({}), axis({ scale: "count" }), axis({ scale: "%", side: 1, grid: { show: false }, values: (_, ticks) => ticks.map((tick) => tick + "%") })],
    };
    const plot = new uPlot(options, data, holder);
    addEventListener("resize", () => plot.setSize({ width: holder.clientWidth, height: 260 }));
  }

  function curve(holder, run) {
    const points = run.length_points;
    const data = [points.map((point) => point.input_tokens), points.map((point) => point.ttft_s)];
    const series = [{ label: "prompt tokens" }, { label: "TTFT, s", stroke: "#4f8cc9", paths: () => null, points: { show: true, size: 5 } }];
    const fit = run.curve[0];
    if (fit && fit.slope_s_per_1k_tokens != null) {
      data.push(data[0].map((tokens) => fit.intercept_s + (fit.slope_s_per_1k_tokens * tokens) / 1000));
      series.push({ label: "fit, s", stroke: "#d9822b", width: 1, points: { show: false } });
    }
    new uPlot({ width: holder.clientWidth, height: 260, series, scales: { x: { time: false } }, axes: [axis({}), axis({})] }, data, holder);
  }

  for (const holder of document.querySelectorAll(".plot.timeline")) timeline(holder, runs[holder.dataset.run]);
  for (const holder of document.querySelectorAll(".plot.curve")) curve(holder, runs[holder.dataset.run]);
  document.documentElement.dataset.ready = "yes";
})();
