import type { IncomingMessage, ServerResponse } from 'node:http';

/** The files of the page besides its document. */
export interface PageFiles {
  script: string;
  style: string;
}

const DOCUMENT = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Holdfast</title>
<link rel="icon" href="/console/icon.svg">
<link rel="stylesheet" href="/console/page.css">
<script type="module" src="/console/page.js"></script>
</head>
<body><div id="app"><noscript>This page needs JavaScript. The command holdfast shows the same in a terminal.</noscript></div></body>
</html>
`;

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b5cad"/><path d="M10 15v-4a6 6 0 0 1 12 0v4" fill="none" stroke="#fff" stroke-width="3"/><rect x="7" y="15" width="18" height="11" rx="3" fill="#fff"/></svg>`;

const FILES: Record<string, { type: string; text(files: PageFiles): string }> = {
  '/': { type: 'text/html; charset=utf-8', text: () => DOCUMENT },
  '/console/page.js': { type: 'text/javascript; charset=utf-8', text: ({ script }) => script },
  '/console/page.css': { type: 'text/css; charset=utf-8', text: ({ style }) => style },
  '/console/icon.svg': { type: 'image/svg+xml', text: () => ICON },
};

/** A second defence: a caller may name itself `<script>`, and even if a bug of the page set that name as markup, the browser would not run it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"],
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/**
 * Answers a request if it is for a file of the page. These files contain no data, so they need no token.
 * @param files returns the files, when the first of them is requested
 * @returns true if the request was answered
 */
export async function answerPage(
  { method, url = '' }: IncomingMessage,
  response: ServerResponse,
  files: () => Promise<PageFiles>,
): Promise<boolean> {
  const path = url.split('?', 1)[0] ?? '';
  const file = method === 'GET' && Object.hasOwn(FILES, path) ? FILES[path] : undefined;
  if (!file) return false;
  const text = file.text(await files());
  response.writeHead(200, { ...HEADERS, 'content-type': file.type });
  response.end(text);
  return true;
}
