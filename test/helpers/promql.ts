// What an expression of PromQL asks for, as far as names go: enough to hold dashboards and rules to what is declared.

export interface Selector {
  readonly metric: string
  /** Labels that its matchers name. */
  readonly labels: readonly string[]
}

export interface Asked {
  readonly selectors: readonly Selector[]
  /** Labels that results are grouped, joined or renamed by. */
  readonly labels: readonly string[]
  /** Labels that the expression makes itself. */
  readonly made: readonly string[]
}

const token = /\s+|"(?:[^"\\]|\\.)*"|[a-zA-Z_:][\w:]*|[0-9][\w.]*|\.[0-9]+|=~|!~|!=|==|<=|>=|[^\s\w]/gy
const lists = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right'])
const words = new Set(['and', 'or', 'unless', 'bool', 'offset', 'atan2', 'inf', 'nan', ...lists])
/** Functions whose texts are labels: which of them it makes, and which it reads. */
const renaming: Readonly<
  Record<string, { made: number; read: (texts: readonly string[]) => readonly string[] }>
> = {
  label_replace: { made: 0, read: texts => texts.slice(2, 3) },
  label_join: { made: 0, read: texts => texts.slice(2) },
}

/** Throws where it is no expression that this understands. */
export function askedBy(expression: string): Asked {
  const tokens = (expression.match(token) ?? []).filter(part => part.trim() !== '')
  if (tokens.join('') !== expression.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, '$1'))
    throw new Error(`cannot read ${expression}`)
  const selectors: Selector[] = []
  const labels: string[] = []
  const made: string[] = []
  const calls: { name: string; texts: string[] }[] = []
  for (let i = 0; i < tokens.length; i++) {
    const part = tokens[i]!
    const next = tokens[i + 1]
    if (part === '(') calls.push({ name: isName(tokens[i - 1]) ? tokens[i - 1]! : '', texts: [] })
    else if (part === ')') {
      const { name, texts } = calls.pop()!
      const rule = renaming[name]
      if (rule === undefined) continue
      made.push(texts[rule.made]!)
      labels.push(...rule.read(texts))
    } else if (part.startsWith('"')) calls.at(-1)?.texts.push(JSON.parse(part) as string)
    else if (lists.has(part) && next === '(') {
      const end = tokens.indexOf(')', i)
      labels.push(...tokens.slice(i + 2, end).filter(isName))
      i = end
    } else if (part === '[') i = tokens.indexOf(']', i)
    else if (part === '{') throw new Error(`cannot read ${expression}: a selector without a name`)
    else if (isName(part) && !words.has(part) && next !== '(' && next !== 'by' && next !== 'without') {
      const matchers = next === '{' ? tokens.slice(i + 2, tokens.indexOf('}', i)) : []
      const named = matchers.filter((each, at) => isName(each) && (at === 0 || matchers[at - 1] === ','))
      selectors.push({ metric: part, labels: named })
      if (next === '{') i = tokens.indexOf('}', i)
    }
  }
  return { selectors, labels, made }
}

function isName(part: string | undefined): part is string {
  return part !== undefined && /^[a-zA-Z_:]/.test(part)
}
