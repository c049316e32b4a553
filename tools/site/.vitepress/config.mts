// Builds a web site from docs/: `make site` writes it to dist/site. A broken link fails the build.
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { defineConfig } from 'vitepress'

const repository = 'https://github.com/megatron-ops/megatron-ops'

// The pages are outside this folder, so their imports of vue need an alias.
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
      { text: 'Start', items: [page('Tutorial', '/tutorial'), page('入门教程', '/zh/tutorial'), page('Install', '/install'), page('Comparison with other tools', '/comparison')] },
      {
        text: 'How-to guides',
        items: [
          page('Set up Slack', '/slack'), page('Set up an agent', '/mcp'), page('Configure the site', '/configuration'), page('Require approval', '/approvals'),
          page('Serve several clusters', '/clusters'), page('Run it on PostgreSQL', '/postgresql'), page('Upgrade and back up', '/upgrading'), page('Web page', '/web'),
          page('Notifications', '/notify'), page('Monitor it', '/monitoring'), page('Pipelines', '/pipelines'), page('Work from a laptop', '/sync'),
        ],
      },
      {
        text: 'Reference',
        items: [
          page('Operations', '/operations'), page('Job specification', '/specification'), page('Rules', '/rules'), page('Lint rules', '/lint'), page('Failure classes, and how the cause is found', '/failures'),
          page('Compatibility with Slurm releases', '/compatibility'), page('Accuracy of estimates', '/accuracy'), page('Measurements', '/measurements'),
        ],
      },
      {
        text: 'Explanation',
        items: [page('Rules by release', '/releases'), page('Exactly once', '/exactly-once'), page('Reliability', '/reliability'), page('Consent', '/consent'), page('Security', '/security'), page('Architecture', '/architecture')],
      },
    ],
  },
})
