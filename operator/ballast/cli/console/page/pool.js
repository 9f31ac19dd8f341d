// The picture of a pool: zones side by side, racks within them, nodes as tiles, executors as dots on their node.
import {init} from "./echarts.js";

const GAP = 3, TITLE = 16, SHADES = 5, NAMED = 64, HIGHEST = 520;

/** Tiles for a picture of this width: rectangles of zones and racks with their names, one of each node, and the height. */
export function layout(nodes, width) {
  let lowest = 0;
  const zones = grouped(nodes.map((node, index) => ({...node, index})), node => node.zone ?? "no zone");
  const frames = [], tiles = new Array(nodes.length);
  let x = GAP;
  const free = width - GAP * (zones.length + 1);
  for (const [zone, inZone] of zones) {
    const racks = grouped(inZone, node => node.rack ?? "");
    const zoneWidth = free * (inZone.length / nodes.length);
    frames.push({name: zone, level: 0, x, y: 0, width: zoneWidth});
    const titles = racks.length * (TITLE + GAP);
    const side = tileSide(racks.map(([, inRack]) => inRack.length), zoneWidth - 2 * GAP, HIGHEST - TITLE - titles - GAP);
    let y = TITLE + GAP;
    for (const [rack, inRack] of racks) {
      const columns = Math.max(1, Math.floor((zoneWidth - 2 * GAP) / side));
      frames.push({name: rack, level: 1, x: x + GAP, y, width: zoneWidth - 2 * GAP, height: TITLE});
      inRack.forEach((node, position) => {
        const row = Math.floor(position / columns), column = position % columns;
        tiles[node.index] = {x: x + GAP + column * side, y: y + TITLE + row * side, side: side - Math.min(GAP, side / 8)};
      });
      y += TITLE + Math.ceil(inRack.length / columns) * side + GAP;
    }
    x += zoneWidth + GAP;
    lowest = Math.max(lowest, y);
  }
  return {frames, tiles, height: lowest + GAP};
}

/** The largest side with which the tiles of all racks fit below one another. */
function tileSide(counts, width, height) {
  let low = 2, high = Math.min(width, 96);
  for (let step = 0; step < 24; step++) {
    const side = (low + high) / 2, columns = Math.max(1, Math.floor(width / side));
    const rows = counts.reduce((sum, count) => sum + Math.ceil(count / columns), 0);
    if (rows * side <= height) low = side; else high = side;
  }
  return low;
}

function grouped(items, key) {
  const found = new Map();
  for (const item of items) {
    const name = key(item);
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(item);
  }
  return [...found].sort(([one], [other]) => (one < other ? -1 : 1));
}

export function shade(score) {
  return score == null ? "unknown" : `heat${Math.max(0, Math.min(SHADES - 1, Math.floor(score / (100 / SHADES))))}`;
}

export class PoolPicture {
  constructor(element, onChosen) {
    this.element = element;
    this.onChosen = onChosen;
    this.chosen = null;
    this.chart = init(element, null, {renderer: "canvas"});
    this.chart.on("click", event => { if (event.seriesId === "nodes") this.choose(event.dataIndex); });
    element.addEventListener("keydown", event => this.pressed(event));
    new ResizeObserver(() => { if (this.chart.getWidth() !== element.clientWidth) this.draw(); }).observe(element);
  }

  show(pool, topology) {
    this.pool = pool;
    this.topology = topology;
    this.dots = Array.from(pool.nodes.items, () => []);
    for (const [name, owner, node, phase] of pool.executors) if (node != null) this.dots[node].push([name, owner, phase]);
    if (this.chosen != null && this.chosen >= pool.nodes.items.length) this.chosen = null;
    this.draw();
  }

  choose(index) {
    this.chosen = index;
    this.draw();
    this.onChosen(index == null ? null : this.pool.nodes.items[index], index == null ? [] : this.dots[index]);
  }

  pressed(event) {
    const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
    if (!step || !this.places?.tiles.length) return;
    event.preventDefault();
    this.choose(this.chosen == null ? 0 : neighbor(this.places.tiles, this.chosen, step));
  }

  draw() {
    if (!this.pool) return;
    const nodes = this.pool.nodes.items;
    this.places = layout(nodes, this.element.clientWidth);
    const height = Math.ceil(this.places.height);
    if (this.chart.getHeight() !== height || this.chart.getWidth() !== this.element.clientWidth) {
      this.element.style.height = `${height}px`;
      this.chart.resize({height});
    }
    const style = getComputedStyle(document.documentElement), color = name => style.getPropertyValue(`--${name}`).trim();
    const colors = Object.fromEntries(["ink", "soft", "line", "accent", "paper", "bad", "unknown", "heat0", "heat1", "heat2",
      "heat3", "heat4"].map(name => [name, color(name)]));
    const {frames, tiles} = this.places;
    const position = new Map(nodes.map((node, index) => [node.name, index]));
    const arrows = this.pool.plan.moves.map(move => [position.get(move.from), position.get(move.to)])
      .filter(([from, to]) => from != null && to != null);
    const series = (id, data, renderItem, more) => (
      {id, type: "custom", coordinateSystem: undefined, data, renderItem, animation: false, ...more});
    this.chart.setOption({
      animation: false,
      series: [
        series("frames", frames.map((_, index) => [index]), params => frame(frames[params.dataIndex], height, colors), {silent: true}),
        series("nodes", nodes.map((node, index) => [index]), params => this.tile(params.dataIndex, tiles, colors)),
        series("arrows", arrows, params => arrow(tiles[arrows[params.dataIndex][0]], tiles[arrows[params.dataIndex][1]], colors),
          {silent: true}),
      ],
    }, {replaceMerge: ["series"], lazyUpdate: false});
  }

  tile(index, tiles, colors) {
    const node = this.pool.nodes.items[index], {x, y, side} = tiles[index], dots = this.dots[index];
    const children = [{
      type: "rect", shape: {x, y, width: side, height: side},
      style: {
        fill: colors[shade(node.score)], stroke: index === this.chosen ? colors.accent : node.pair ? colors.ink : colors.line,
        lineWidth: index === this.chosen ? 3 : node.pair ? 1.5 : 0.5, lineDash: node.score == null ? [3, 2] : null,
      },
    }];
    const named = side >= NAMED ? 14 : 0, free = side - 4 - named;
    const columns = Math.max(1, Math.ceil(Math.sqrt(dots.length))), step = Math.min(free / columns, 16), size = step - Math.min(2, step / 4);
    if (named) {
      children.push({type: "text", x: x + 3, y: y + side - named, style: {text: node.name, fill: colors[node.score > 60 ? "paper" : "ink"],
        font: "10px system-ui", width: side - 6, overflow: "truncate"}});
    }
    if (size >= 1) children.push(...this.executors(dots, {x: x + 2, y: y + 2, columns, step, size}, colors));
    return {type: "group", children};
  }

  /** All dots that look alike are one path: ten thousand elements take ten times as long. */
  executors(dots, {x, y, columns, step, size}, colors) {
    const paths = new Map();
    dots.forEach(([, owner, phase], place) => {
      const mine = this.topology == null || owner === this.topology, look = mine ? (phase === "Running" ? 0.85 : 0.4) : 0.25;
      const left = x + (place % columns) * step, top = y + Math.floor(place / columns) * step;
      const drawn = `M${left.toFixed(1)} ${top.toFixed(1)}h${size.toFixed(1)}v${size.toFixed(1)}h-${size.toFixed(1)}z`;
      paths.set(look, (paths.get(look) ?? "") + drawn);
    });
    return [...paths].map(([opacity, pathData]) => ({
      type: "path", shape: {pathData},
      style: {
        fill: opacity === 0.25 ? colors.soft : this.topology == null ? colors.ink : colors.accent,
        stroke: colors.paper, lineWidth: size > 6 ? 1 : 0, opacity,
      },
    }));
  }
}

function frame({name, level, x, y, width}, height, colors) {
  const text = {
    type: "text", x: x + 3, y: y + 2,
    style: {text: name, fill: level ? colors.soft : colors.ink, font: `${level ? 10 : 12}px system-ui`, width: width - 6,
      overflow: "truncate"},
  };
  if (level) return text;
  return {type: "group", children: [
    {type: "rect", shape: {x, y, width, height: height - 1}, style: {fill: "none", stroke: colors.line}}, text]};
}

function arrow(from, to, colors) {
  const [x1, y1, x2, y2] = [from.x + from.side / 2, from.y + from.side / 2, to.x + to.side / 2, to.y + to.side / 2];
  const angle = Math.atan2(y2 - y1, x2 - x1), head = turn => [x2 - 9 * Math.cos(angle + turn), y2 - 9 * Math.sin(angle + turn)];
  return {type: "group", children: [
    {type: "line", shape: {x1, y1, x2, y2}, style: {stroke: colors.accent, lineWidth: 2}},
    {type: "polygon", shape: {points: [[x2, y2], head(0.4), head(-0.4)]}, style: {fill: colors.accent}},
  ]};
}

/** The nearest tile in that direction; the same one where there is none. */
function neighbor(tiles, from, [dx, dy]) {
  const here = tiles[from];
  let best = from, least = Infinity;
  tiles.forEach((tile, index) => {
    const along = (tile.x - here.x) * dx + (tile.y - here.y) * dy;
    const across = Math.abs((tile.x - here.x) * dy) + Math.abs((tile.y - here.y) * dx);
    const distance = along + 4 * across;
    if (along > 0.5 && distance < least) [best, least] = [index, distance];
  });
  return best;
}
