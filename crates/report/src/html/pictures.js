"use strict";
// Draws the pictures of a page from the data in it. Names in the data are drawn as text and never become markup.
(() => {
  const pictures = JSON.parse(document.getElementById("pictures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = () => window.innerWidth < 640;

  // Three digits, as everywhere in the page.
  const digits = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));
  const time = (ns) => {
    if (ns < 1000) return `${ns} ns`;
    const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]];
    const [scale, unit] = units.find(([scale]) => ns >= scale);
    return `${digits(ns / scale)} ${unit}`;
  };
  const count = (value) => value.toLocaleString("en");
  const bytes = (value) => {
    const [scale, unit] = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]].find(([scale]) => value >= scale) ?? [1, "bytes"];
    return scale === 1 ? `${value} ${unit}` : `${digits(value / scale)} ${unit}`;
  };
  const words = { ns: time, misses: (value) => `${count(value)} misses`, bytes, pages: (value) => `${count(value)} pages` };
  const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

  /** Colors of the scheme that the page is shown in, or of paper. */
  const colors = (paper) => {
    const element = document.createElement("div");
    if (paper) element.className = "light";
    document.body.append(element);
    const style = getComputedStyle(element);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    const all = Object.fromEntries(["paper", "ink", "faint", "rule", "panel", "link", "least", "middle", "most", "good", "bad", "busy", "caches", "memory", "nodes", "tlb"].map((name) => [name, color(name)]));
    element.remove();
    return all;
  };

  const frame = (of) => ({
    animation: false,
    // The place has a label of its own.
    aria: { enabled: false },
    backgroundColor: of.paper,
    textStyle: { color: of.ink, fontFamily: "system-ui, sans-serif" },
    // Drawn on the canvas: text of a result never becomes an element.
    tooltip: { renderMode: "richText", confine: true, backgroundColor: of.panel, borderColor: of.rule, textStyle: { color: of.ink } },
  });

  /** Lines where phases begin, with their names along them. */
  const marks = (view, of) => ({
    silent: true, symbol: "none",
    lineStyle: { color: of.ink, type: "dotted" },
    label: { color: of.ink, position: "insideEndTop", fontSize: 11, formatter: ({ name }) => cut(name, 24) },
    data: (view.marks ?? []).map(({ column, name }) => ({ xAxis: column, name })),
  });

  const heat = (view, of) => {
    const cells = [];
    let most = 0;
    view.rows.forEach((row, y) => row.values.forEach((value, x) => {
      if (value === 0) return;
      most = Math.max(most, value);
      // Colors by the root: what is waited for a tenth as long can still be seen.
      cells.push([x, y, Math.sqrt(value), value]);
    }));
    const left = narrow() ? 104 : 260;
    return {
      ...frame(of),
      tooltip: {
        ...frame(of).tooltip,
        formatter: ({ value: [x, y, , value] }) => {
          const row = view.rows[y];
          const lines = [row.name, row.about, `${view.along.split(",")[0]} ${view.columns[x]}`, words[view.unit](value)];
          return lines.filter((line) => line).map((line) => cut(line, narrow() ? 40 : 90)).join("\n");
        },
      },
      grid: { left, right: 16, top: 10, bottom: 96, backgroundColor: of.least, show: true, borderWidth: 0 },
      xAxis: { type: "category", data: view.columns, name: view.along, nameLocation: "middle", nameGap: 26, nameTextStyle: { color: of.faint }, axisLabel: { color: of.faint, hideOverlap: true }, axisLine: { lineStyle: { color: of.rule } }, axisTick: { show: false } },
      yAxis: { type: "category", data: view.rows.map((row) => row.name), inverse: true, axisLabel: { color: of.ink, width: left - 12, overflow: "truncate", fontFamily: "ui-monospace, monospace", fontSize: 12, hideOverlap: true }, axisLine: { show: false }, axisTick: { show: false } },
      visualMap: { type: "continuous", dimension: 2, min: 0, max: Math.sqrt(most), calculable: false, orient: "horizontal", left: left, bottom: 0, itemHeight: narrow() ? 90 : 160, itemWidth: 10, text: [words[view.unit](most), "0"], textStyle: { color: of.faint }, inRange: { color: [of.least, of.middle, of.most] } },
      dataZoom: [
        { type: "slider", xAxisIndex: 0, bottom: 34, height: 16, showDetail: false, brushSelect: true },
        { type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false },
        { type: "inside", yAxisIndex: 0, zoomOnMouseWheel: "shift", moveOnMouseWheel: false },
      ],
      series: [{ type: "heatmap", data: cells, progressive: 0, markLine: marks(view, of), itemStyle: { borderWidth: 0 }, emphasis: { itemStyle: { borderColor: of.ink, borderWidth: 1 } } }],
    };
  };

  const graph = (view, of) => {
    const most = Math.max(1, ...view.edges.map((edge) => edge.misses));
    const largest = Math.max(1, ...view.nodes.map((node) => node.bytes));
    return {
      ...frame(of),
      tooltip: {
        ...frame(of).tooltip,
        formatter: ({ dataType, data }) => cut(dataType === "edge" ? `${data.ends}\n${data.about}` : data.about, 160),
      },
      series: [{
        type: "graph", layout: "circular", roam: "move", top: 40, bottom: 40,
        circular: { rotateLabel: false },
        label: { show: true, position: "right", color: of.ink },
        itemStyle: { color: of.link },
        data: view.nodes.map((node, at) => ({ id: String(at), name: cut(node.name, 24), about: `${node.name}: ${node.about}`, symbolSize: 8 + 22 * Math.sqrt(node.bytes / largest) })),
        links: view.edges.map((edge) => ({
          source: String(edge.from), target: String(edge.to), about: edge.about,
          ends: `${view.nodes[edge.from].name} and ${view.nodes[edge.to].name}`,
          lineStyle: { width: 1 + 7 * edge.misses / most, color: of.memory, opacity: 0.35 + 0.5 * edge.misses / most },
        })),
      }],
    };
  };

  // Bars as wide as what they wait for. `view.whole` is the one that is shown in full width.
  const flame = (view, of) => {
    const whole = view.bars[view.whole ?? 0];
    const [begin, end] = [whole.from, whole.from + whole.ns];
    const inside = (bar) => bar.from < end && bar.from + bar.ns > begin && (bar.depth <= whole.depth ? bar.from <= begin && bar.from + bar.ns >= end : true);
    const shown = view.bars.map((bar, at) => ({ bar, at })).filter(({ bar }) => inside(bar));
    const height = 22;
    const tone = (name) => [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 4, 0);
    const tones = [of.middle, of.caches, of.tlb, of.busy];
    return {
      ...frame(of),
      tooltip: {
        ...frame(of).tooltip,
        formatter: ({ data: { value: [at] } }) => {
          const bar = view.bars[at];
          return `${cut(bar.name, narrow() ? 40 : 120)}\n${time(bar.ns)}, ${digits(100 * bar.ns / view.bars[0].ns)}%`;
        },
      },
      grid: { left: 0, right: 0, top: 0, bottom: 0 },
      xAxis: { show: false, min: begin, max: end },
      yAxis: { show: false, min: 0, max: 1 + Math.max(...view.bars.map((bar) => bar.depth)), inverse: true },
      series: [{
        type: "custom",
        progressive: 0,
        data: shown.map(({ bar, at }) => ({ value: [at, Math.max(bar.from, begin), Math.min(bar.from + bar.ns, end), bar.depth] })),
        encode: { x: [1, 2], y: 3 },
        renderItem: (params, api) => {
          const bar = view.bars[api.value(0)];
          const [left, top] = api.coord([api.value(1), api.value(3)]);
          const [right] = api.coord([api.value(2), api.value(3)]);
          const width = Math.max(1, right - left - 1);
          const data = bar.name.startsWith("[");
          return {
            type: "rect",
            shape: { x: left, y: top, width, height: height - 1 },
            style: { fill: data ? of.memory : tones[tone(bar.name)], opacity: bar.depth < whole.depth ? 0.5 : 1 },
            textConfig: { position: "insideLeft" },
            textContent: { style: { text: width > 30 ? bar.name : "", fill: "#111111", fontFamily: "ui-monospace, monospace", fontSize: 12, width: width - 8, overflow: "truncate" } },
          };
        },
      }],
    };
  };

  const pairs = (view, of) => {
    const tones = { better: of.good, worse: of.bad, same: of.faint };
    const left = narrow() ? 104 : 320;
    const bar = (name, values) => ({ name, type: "bar", barMaxWidth: 12, data: values });
    return {
      ...frame(of),
      tooltip: {
        ...frame(of).tooltip,
        trigger: "axis", axisPointer: { type: "shadow" },
        formatter: ([{ dataIndex }]) => {
          const row = view.rows[dataIndex];
          return `${cut(row.name, narrow() ? 40 : 120)}\nbefore ${time(row.before)}\nafter ${time(row.after)}`;
        },
      },
      grid: { left, right: 24, top: 6, bottom: 28 },
      xAxis: { type: "value", axisLabel: { color: of.faint, formatter: time, hideOverlap: true }, splitLine: { lineStyle: { color: of.rule } } },
      yAxis: { type: "category", inverse: true, data: view.rows.map((row) => row.name), axisTick: { show: false }, axisLine: { lineStyle: { color: of.rule } }, axisLabel: { color: of.ink, width: left - 12, overflow: "truncate", fontFamily: "ui-monospace, monospace", fontSize: 12 } },
      series: [
        bar("before", view.rows.map((row) => ({ value: row.before, itemStyle: { color: of.middle } }))),
        bar("after", view.rows.map((row) => ({ value: row.after, itemStyle: { color: tones[row.verdict] } }))),
      ],
    };
  };

  const draw = { heat, graph, flame, pairs };
  const heights = {
    heat: (view) => Math.min(480, 150 + 34 * view.rows.length),
    graph: (view) => Math.min(480, 160 + 40 * view.nodes.length),
    pairs: (view) => 50 + 38 * view.rows.length,
    flame: (view) => 22 * (1 + Math.max(...view.bars.map((bar) => bar.depth))),
  };

  const show = (picture) => {
    const figure = document.getElementById(picture.id);
    const place = figure.querySelector(".drawing");
    const zoom = figure.querySelector(".zoom");
    const tabs = [...figure.querySelectorAll("[role=tab]")];
    place.replaceChildren();
    const chart = echarts.init(place, null, { renderer: "canvas" });
    let at = 0;
    // `keep`: what is in sight stays so.
    const redraw = (paper, keep = false) => {
      const view = picture.views[at];
      const windows = keep ? (chart.getOption().dataZoom ?? []) : [];
      zoom.hidden = view.kind === "graph" || view.kind === "pairs";
      zoom.querySelectorAll("button").forEach((button) => (button.hidden = view.kind === "flame" && button.dataset.zoom !== "all"));
      place.style.height = `${heights[view.kind](view)}px`;
      chart.resize();
      chart.setOption(draw[view.kind](view, colors(paper)), { notMerge: true });
      windows.forEach(({ start, end }, number) => chart.dispatchAction({ type: "dataZoom", dataZoomIndex: number, start, end }));
    };
    const choose = (next) => {
      at = next;
      tabs.forEach((tab, number) => {
        tab.setAttribute("aria-selected", String(number === at));
        tab.tabIndex = number === at ? 0 : -1;
      });
      redraw(false);
    };
    tabs.forEach((tab, number) => {
      tab.addEventListener("click", () => choose(number));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        choose((at + step + tabs.length) % tabs.length);
        tabs[at].focus();
      });
    });
    chart.on("click", ({ data }) => {
      const view = picture.views[at];
      if (view.kind !== "flame") return;
      view.whole = data.value[0];
      redraw(false);
    });
    zoom.addEventListener("click", ({ target }) => {
      if (picture.views[at].kind === "flame") {
        picture.views[at].whole = 0;
        redraw(false);
        return;
      }
      const { start, end } = chart.getOption().dataZoom[0];
      const part = end - start;
      const middle = (start + end) / 2;
      const next = {
        in: [middle - part / 4, middle + part / 4],
        out: [middle - part, middle + part],
        left: [start - part / 2, end - part / 2],
        right: [start + part / 2, end + part / 2],
        all: [0, 100],
      }[target.dataset.zoom];
      if (!next) return;
      let [from, to] = next;
      if (from < 0) [from, to] = [0, to - from];
      if (to > 100) [from, to] = [Math.max(0, from - (to - 100)), 100];
      chart.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: from, end: to });
    });
    redraw(false);
    new ResizeObserver(() => chart.resize()).observe(place);
    dark.addEventListener("change", () => redraw(false, true));
    // Paper gets an image: a canvas is resized for it, and would be drawn in a frame that never comes.
    const image = document.createElement("img");
    image.className = "paper";
    image.alt = place.getAttribute("aria-label") ?? "";
    window.addEventListener("beforeprint", () => {
      redraw(true, true);
      image.src = chart.getDataURL({ pixelRatio: 2 });
      place.after(image);
    });
    window.addEventListener("afterprint", () => {
      image.remove();
      redraw(false, true);
    });
  };

  // Paper shows what is folded away on a screen, but for tables of several pages.
  const LONGEST = 40;
  let unfolded = [];
  window.addEventListener("beforeprint", () => {
    const short = (part) => part.querySelectorAll("tr").length <= LONGEST;
    unfolded = [...document.querySelectorAll("details:not([open])")].filter(short);
    unfolded.forEach((part) => (part.open = true));
  });
  window.addEventListener("afterprint", () => unfolded.forEach((part) => (part.open = false)));

  pictures.forEach(show);
})();
