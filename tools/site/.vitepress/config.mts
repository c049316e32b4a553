// The site of docs/: `make site` writes it to dist/site. A link that leads nowhere fails the build.
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { defineConfig } from 'vitepress'

const repository = 'https://github.com/megatron-ops/megatron-ops'

// The pages lie outside of this folder, where their imports of vue would not be found.
const vue = dirname(createRequire(import.meta.url).resolve('vue/package.json'))

const page = (text: string, link: string) => ({ text, link })

export default defineConfig({
  title: 'megatron-ops',
  description: 'Plan, render, submit, watch and diagnose Megatron-LM jobs on Slurm',
  srcDir: '../../docs',
  outDir: '../../dist/site',
  cleanUrls: true,
  lastUpdated: false,
  markdown: { html: true },
  vite: { resolve: { alias: [{ find: /^vue$/, replacement: vue + '/dist/vue.runtime.esm-bundler.js' }, { find: /^vue\/server-renderer$/, replacement: vue + '/server-renderer/index.mjs' }] } },
  themeConfig: {
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: repository + '/edit/main/docs/:path', text: 'Change this page' },
    sidebar: [
      { text: 'Begin', items: [page('Tutorial', '/tutorial'), page('入门教程', '/zh/tutorial'), page('Install', '/install'), page('Compared with others', '/comparison')] },
      {
        text: 'How to',
        items: [
          page('Set up Slack', '/slack'), page('Set up an agent', '/mcp'), page('Describe the site', '/configuration'), page('Have submissions approved', '/approvals'),
          page('Serve several clusters', '/clusters'), page('Run it on PostgreSQL', '/postgresql'), page('Upgrade and back up', '/upgrading'), page('Open the page', '/web'),
          page('Tell other services', '/notify'), page('Monitor it', '/monitoring'), page('Chain steps', '/pipelines'), page('Work from a laptop', '/sync'),
        ],
      },
      {
        text: 'Reference',
        items: [
          page('Operations', '/operations'), page('Job specification', '/specification'), page('Rules', '/rules'), page('Script checks', '/lint'), page('Failure classes, and how the cause is found', '/failures'),
          page('Slurm releases', '/compatibility'), page('Accuracy', '/accuracy'),
        ],
      },
      {
        text: 'Explanation',
        items: [page('Rules by release', '/releases'), page('Exactly once', '/exactly-once'), page('Reliability', '/reliability'), page('Consent', '/consent'), page('Security', '/security'), page('Architecture', '/architecture')],
      },
    ],
  },
})
