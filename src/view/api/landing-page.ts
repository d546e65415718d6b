/** The page at `/`, with links to others. `links`: path → text. */
export function landingPage(title: string, version: string, links: ReadonlyMap<string, string>): string {
  const items = [...links].map(([path, text]) => `<li><a href="${escaped(path)}">${escaped(text)}</a></li>`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>body{font:1rem system-ui,sans-serif;margin:2rem;max-width:40rem}</style>
</head>
<body>
<h1>${escaped(title)}</h1>
<p>Version ${escaped(version)}</p>
<ul>
${items.join('\n')}
</ul>
</body>
</html>
`
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, character => `&#${character.charCodeAt(0)};`)
}
