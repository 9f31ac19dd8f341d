// Predicted and measured gain of each move over time.
import {init} from "./echarts.js";

const DAY = 86400;

export class GainsPicture {
  constructor(element) {
    this.element = element;
    new ResizeObserver(() => { this.chart?.resize(); }).observe(element);
  }

  /** Nothing is drawn where no gain is known. */
  show(pool) {
    const moves = pool.timeline.filter(move => move.predictedGain != null || move.measuredGain != null);
    this.element.hidden = moves.length === 0;
    if (moves.length === 0) return;
    this.chart ??= init(this.element, null, {renderer: "canvas"});
    this.chart.resize();
    const style = getComputedStyle(document.documentElement), color = name => style.getPropertyValue(`--${name}`).trim();
    const [soft, line, accent, bad, paper] = ["soft", "line", "accent", "bad", "paper"].map(color);
    const first = Math.min(...moves.map(move => move.startedSeconds)), span = Math.max(pool.nowSeconds - first, 600);
    const axis = {axisLine: {lineStyle: {color: soft}}, axisLabel: {color: soft}, splitLine: {lineStyle: {color: line}}};
    this.chart.setOption({
      animation: false,
      grid: {left: 45, right: 20, top: 12, bottom: 26},
      xAxis: {...axis, type: "value", min: first - span * 0.03, max: pool.nowSeconds, splitLine: {show: false},
        axisLabel: {color: soft, formatter: at => clock(at, span)}},
      yAxis: {...axis, type: "value", name: "", min: extent => Math.min(0, extent.min), max: extent => Math.max(10, extent.max)},
      series: [{
        type: "custom", animation: false, encode: {x: 0, y: [1, 2]},
        data: moves.map(move => [move.startedSeconds, move.predictedGain ?? NaN, move.measuredGain ?? NaN]),
        renderItem: (params, api) => {
          const at = index => Number.isFinite(api.value(index)) ? api.coord([api.value(0), api.value(index)]) : null;
          const predicted = at(1), measured = at(2), good = (api.value(2) ?? 0) > 0, children = [];
          if (predicted && measured) {
            children.push({type: "line", shape: {x1: predicted[0], y1: predicted[1], x2: measured[0], y2: measured[1]},
              style: {stroke: soft}});
          }
          if (predicted) {
            children.push({type: "circle", shape: {cx: predicted[0], cy: predicted[1], r: 4},
              style: {fill: paper, stroke: accent, lineWidth: 1.5}});
          }
          if (measured) {
            children.push({type: "circle", shape: {cx: measured[0], cy: measured[1], r: 4}, style: {fill: good ? accent : bad}});
          }
          return {type: "group", children};
        },
      }],
    }, {notMerge: true});
  }
}

function clock(seconds, span) {
  const at = new Date(seconds * 1000);
  const time = at.toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"});
  return span > DAY ? `${at.toLocaleDateString([], {month: "short", day: "numeric"})} ${time}` : time;
}
