// Flame graph as a drawing that works without scripts: root on top, callees below, a tooltip per frame.

import { cutEnd, cutStart } from '../../foundation/lib/cut-text.ts'
import { grouped } from '../../foundation/lib/number-text.ts'
import type { FlameGraph } from './flame-graph.ts'
import { frameTypes } from './flame-tree.ts'
import { isUnnamed, kindTitles, shareText, valueText } from './frame-text.ts'

const width = 1200
const margin = 10
const room = width - 2 * margin
const rowHeight = 17
const headHeight = 86
const footHeight = 26
/** Narrower frames are omitted. */
const leastWidth = 0.3
/** Maximum characters of all frames: the drawing stays below 500 KB. */
const mostBytes = 480_000
/** Width of the 11 px monospace labels. */
const characterWidth = 6.65
const mostName = 240
const mostFile = 160

/** Frame colours by type: hue, saturation. Frames without type or name are grey. */
const colours: Readonly<Record<string, readonly [hue: number, saturation: number]>> = {
  '': [220, 8],
  native: [28, 85],
  kernel: [205, 55],
  go: [186, 60],
  rust: [14, 55],
  cpython: [52, 80],
  v8js: [110, 45],
  jvm: [350, 60],
  ruby: [335, 65],
  php: [245, 50],
  perl: [220, 45],
  dotnet: [270, 50],
  beam: [300, 40],
  luajit: [230, 65],
}

/** The drawing in parts; largest frames first, up to 500 KB. */
export function* svgParts(graph: FlameGraph): Generator<string> {
  const { tree } = graph
  const whole = tree.total[0]!
  const size = tree.parent.length
  const left = new Float64Array(size)
  const depth = new Uint16Array(size)
  const next = new Float64Array(size)
  // Siblings are adjacent in tree order; a frame's self time is the gap at its right end.
  for (let node = 1; node < size; node++) {
    const above = tree.parent[node]!
    left[node] = left[above]! + next[above]!
    next[above]! += tree.total[node]!
    depth[node] = depth[above]! + 1
  }
  const drawn = yield* chosen()
  let deepest = 0
  for (const node of drawn.keys()) deepest = Math.max(deepest, depth[node]!)
  const height = headHeight + (deepest + 1) * rowHeight + footHeight
  yield* headParts(graph, height)
  for (const text of drawn.values()) yield text
  const hidden = size - drawn.size
  const note =
    whole === 0
      ? 'No samples.'
      : hidden > 0
        ? `${grouped(hidden)} frames too narrow to draw; see the pprof output.`
        : ''
  yield `</g><text x="${margin}" y="${height - 9}" class="s">${escaped(note)}</text>\n`
  yield `<script><![CDATA[${script}]]></script>\n</svg>\n`

  /** Texts of drawn frames by node, in tree order; never without their parent. */
  function* chosen(): Generator<string, ReadonlyMap<number, string>> {
    const scale = whole > 0 ? room / whole : 0
    const wide: number[] = []
    for (let node = 0; node < size; node++)
      if (node === 0 || tree.total[node]! * scale >= leastWidth) wide.push(node)
    // Equal frames in tree order, parents first.
    wide.sort((a, b) => tree.total[b]! - tree.total[a]! || a - b)
    const texts = new Map<number, string>()
    let bytes = 0
    for (const node of wide) {
      const text = frameText(node, scale)
      bytes += Buffer.byteLength(text)
      if (bytes > mostBytes) break
      texts.set(node, text)
      yield ''
    }
    return new Map([...texts].sort(([a], [b]) => a - b))
  }

  function frameText(node: number, scale: number): string {
    const name = tree.strings[tree.name[node]!]!
    const file = tree.strings[tree.file[node]!]!
    const type = frameTypes[tree.type[node]!]!
    const total = tree.total[node]!
    // Rounds edges rather than widths, so that adjacent frames share an edge and the script can tell them apart.
    const x = hundredths(margin + left[node]! * scale)
    const w = hundredths(node === 0 ? margin + room : margin + (left[node]! + total) * scale) - x
    const y = headHeight + depth[node]! * rowHeight
    const label = labelOf(name, w)
    const self = tree.self[node]! > 0 ? `, self ${shareText(tree.self[node]!, whole)}` : ''
    const title = `${cutEnd(name, mostName)}\n${file === '' ? '' : `${cutStart(file, mostFile)}\n`}${shareText(total, whole)}, ${valueText(total, graph.unit)}${self}`
    const shade = isUnnamed(name) || type === '' ? 'u' : type
    const text = label === '' ? '' : `<text x="${hundredths(x + 3)}" y="${y + 12}">${escaped(label)}</text>`
    return `<g class="f ${shade}"><title>${escaped(title)}</title><rect x="${x}" y="${y}" width="${hundredths(w)}" height="16"/>${text}</g>\n`
  }
}

function* headParts(graph: FlameGraph, height: number): Generator<string> {
  const { tree, kind, unit, durationUs, rate, samples, lostSamples } = graph
  const whole = tree.total[0]!
  yield `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">\n`
  yield `<style>${style}</style>\n<rect class="b" width="100%" height="100%"/>\n`
  const measured = [
    kindTitles[kind],
    `${(durationUs / 1e6).toFixed(1)} s`,
    ...(rate > 0 ? [`${rate} Hz`] : []),
    ...(samples > 0 ? [`${grouped(samples)} samples`] : []),
    `${valueText(whole, unit)} total`,
    `${shareText(tree.unnamed, whole)} unnamed`,
    ...(lostSamples > 0 ? [`${grouped(lostSamples)} samples lost`] : []),
    ...hostParts(graph),
  ]
  yield `<text x="${margin}" y="22" class="h">${escaped(cutEnd(graph.title, 120))}</text>\n`
  yield `<text x="${margin}" y="42" class="s">${escaped(measured.join(' · '))}</text>\n`
  yield `<text x="${margin}" y="58" class="s">${escaped(`${new Date(graph.startUs / 1000).toISOString()} · root on top; width is the total; hover for numbers`)}</text>\n`
  yield* legendParts(graph)
  yield `<text id="find" class="s a" x="${width - margin}" y="22" text-anchor="end">search</text><text id="back" class="s a" x="${width - margin - 60}" y="22" text-anchor="end" visibility="hidden">reset</text><text id="hits" class="s" x="${width - margin}" y="58" text-anchor="end"></text>\n`
  yield '<g id="all">\n'
}

function hostParts({ busyNs, idleNs }: FlameGraph): string[] {
  return busyNs + idleNs > 0 ? [`host ${shareText(busyNs, busyNs + idleNs)} busy`] : []
}

/** A square per existing type, with its share of self time. */
function* legendParts({ tree }: FlameGraph): Generator<string> {
  const share = new Map<string, number>()
  for (let node = 1; node < tree.parent.length; node++) {
    const own = tree.self[node]!
    if (own === 0) continue
    const type = frameTypes[tree.type[node]!]!
    const shade = isUnnamed(tree.strings[tree.name[node]!]!) || type === '' ? 'u' : type
    share.set(shade, (share.get(shade) ?? 0) + own)
  }
  let x = margin
  for (const [shade, own] of [...share].sort(([, a], [, b]) => b - a)) {
    const text = `${shade === 'u' ? 'unnamed or untyped' : shade} ${shareText(own, tree.total[0]!)}`
    yield `<g class="${shade}"><rect x="${x}" y="67" width="11" height="11"/></g><text x="${x + 15}" y="77" class="s">${text}</text>`
    x += 30 + text.length * characterWidth
  }
  yield '\n'
}

const style = [
  'text{font:11px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1b1f24}.h{font-size:15px;font-weight:bold}.s{fill:#57606a}.a{cursor:pointer;text-decoration:underline}',
  '.b{fill:#fff}#all text{pointer-events:none}.f{cursor:pointer}.f rect{stroke:#fff;stroke-width:.5}.f:hover rect{stroke:#000;stroke-width:1}.m rect{fill:#c026d3!important}.d{opacity:.45}.x{display:none}',
  ...Object.entries(colours).map(
    ([type, [hue, saturation]]) => `.${type || 'u'} rect{fill:hsl(${hue},${saturation}%,72%)}`,
  ),
  '@media (prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9aa4ae}.b{fill:#0d1117}.f rect{stroke:#0d1117}.f:hover rect{stroke:#fff}',
  ...Object.entries(colours).map(
    ([type, [hue, saturation]]) =>
      `.${type || 'u'} rect{fill:hsl(${hue},${Math.round(saturation * 0.7)}%,32%)}`,
  ),
  '}',
].join('')

/** Zoom by click, search by text. Embedded in the file, loads nothing, and creates no markup from names. */
const script = `(function(){
var all=Array.from(document.querySelectorAll('.f')),left=${margin},room=${room},cw=${characterWidth};
var find=document.getElementById('find'),back=document.getElementById('back'),hits=document.getElementById('hits');
var boxes=all.map(function(g){var r=g.querySelector('rect');return{g:g,r:r,x:+r.getAttribute('x'),w:+r.getAttribute('width'),y:+r.getAttribute('y'),t:g.querySelector('title').textContent,n:g.querySelector('text')}});
function label(b,x,w){
var fit=Math.floor((w-6)/cw),name=b.t.split('\\n')[0];
if(!b.n){b.n=document.createElementNS('http://www.w3.org/2000/svg','text');b.n.setAttribute('y',b.y+12);b.g.appendChild(b.n)}
b.n.setAttribute('x',x+3);
b.n.textContent=3>fit?'':name.length>fit?name.slice(0,fit-2)+'..':name}
function zoom(to){
boxes.forEach(function(b){
var above=to.y>b.y,inside=b.x+b.w>to.x+.001?to.x+to.w-.001>b.x:false;
b.g.classList.toggle('x',!inside);b.g.classList.toggle('d',above);
if(!inside)return;
var x=above?left:left+(b.x-to.x)*room/to.w,w=above?room:b.w*room/to.w;
b.r.setAttribute('x',x);b.r.setAttribute('width',w);label(b,x,w)});
back.setAttribute('visibility',to===boxes[0]?'hidden':'visible')}
boxes.forEach(function(b){b.g.addEventListener('click',function(){zoom(b)})});
back.addEventListener('click',function(){zoom(boxes[0])});
find.addEventListener('click',function(){
var word=(prompt('Search for a function or file')||'').toLowerCase(),sum=0,end=-1;
boxes.slice().sort(function(a,b){return a.x-b.x||b.w-a.w}).forEach(function(b){
var hit=word===''?false:b.t.toLowerCase().includes(word);
b.g.classList.toggle('m',hit);
if(!hit)return;
if(b.x+.001>end){sum+=b.w;end=b.x+b.w}});
hits.textContent=word===''?'':(100*sum/room).toFixed(1)+'% match'});
})()`

function labelOf(name: string, w: number): string {
  const fit = Math.floor((w - 6) / characterWidth)
  if (fit < 3) return ''
  return name.length > fit ? `${name.slice(0, fit - 2)}..` : name
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
}

/** Escapes text. Replaces a lone surrogate left by a cut, as UTF-8 encoding would. */
function escaped(text: string): string {
  return text.replace(/[&<>"]/g, found => entities[found]!)
}
