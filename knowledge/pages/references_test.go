package pages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
)

// mostOnPage is the length in bytes above which a topic is split into several pages. It is
// about 4,000 tokens, which an agent reads at little cost.
const mostOnPage = 16 << 10

// fewest is the least number of cards of a topic. Smaller topics share a page.
const fewest = 8

// topics maps prefixes of card ids to the names of pages. The longest prefix of an id
// counts.
var topics = map[string]string{
	"around.": "around-training", "build.": "images-and-dependencies", "ci.": "tests-and-labels", "ckpt.": "checkpoints", "comm.": "communication",
	"conf.": "slurm-conf", "cp.": "parallelism", "data.": "data", "docker.": "docker", "enroot.": "enroot", "err.": "error-messages",
	"ex.": "examples", "field.": "job-fields", "flag.": "flags", "fp8.": "precision", "gpu.": "gpu-errors", "job.": "jobs", "lim.": "limits", "log.": "logging",
	"lr.": "learning-rate", "mem.": "memory", "mg.": "megatron-facts", "model.": "model-sizes", "moe.": "mixture-of-experts",
	"nccl.": "nccl", "nccl-message.": "nccl-messages", "net.": "nccl", "option.": "sbatch-options", "par.": "parallelism", "pattern.": "file-name-patterns",
	"pipe.": "parallelism", "prec.": "precision", "pyxis.": "pyxis", "rdzv.": "rendezvous", "reason.": "pending-reasons",
	"reason.AssocGrp": "pending-reasons-AssocGrp", "reason.AssocMax": "pending-reasons-AssocMax",
	"reason.QOSGrp": "pending-reasons-QOSGrp", "reason.QOSMax": "pending-reasons-QOSMax", "rec.": "accounting", "run.": "launch",
	"sb.": "everyday-commands", "size.": "model-sizes", "slurm.": "cluster-use", "srun.": "srun", "state.": "states-explained",
	"step.": "steps", "sub.": "submission", "tok.": "data", "torch.": "pytorch", "variable.": "environment-variables",
	"sacct.": "accounting-fields", "scontrol.": "scontrol", "squeue.": "queue-fields", "squeue-letter.": "queue-letters",
	"variable.NCCL_": "nccl-variables", "variable.NCCL_IB_": "nccl-infiniband-variables",
	"variable.NCCL_M": "nccl-m-to-n-variables", "variable.NCCL_N": "nccl-m-to-n-variables", "variable.SBATCH_": "sbatch-variables", "variable.SLURM_": "slurm-variables",
	"variable.SLURM_JOB_": "slurm-job-variables", "variable.SLURM_STEP_": "slurm-job-variables", "xid.": "xid-errors",
}

// topic returns the name of the page for a card id.
func topic(id string) string {
	for n := len(id); n > 0; n-- {
		if t, ok := topics[id[:n]]; ok {
			return t
		}
	}
	return "more"
}

// references returns a skill's pages of cards, by file name: one or more short pages for
// each topic, and answers.md with a table of contents and the command that finds an entry.
// The pages are in English only; SKILL.zh.md and `megatron-ops ask` serve Chinese.
func references(skill string, list []cards.Card) map[string]string {
	byTopic := map[string][]cards.Card{}
	for _, c := range list {
		byTopic[topic(c.ID)] = append(byTopic[topic(c.ID)], c)
	}
	for t, few := range byTopic {
		if len(few) < fewest && t != "more" {
			byTopic["more"] = append(byTopic["more"], few...)
			delete(byTopic, t)
		}
	}
	out := map[string]string{}
	toc := newTable("page", "entries", "from", "to")
	for _, t := range slices.Sorted(maps.Keys(byTopic)) {
		pages := byLetters(byTopic[t])
		for _, page := range pages {
			name, first, last := t, page[0], page[len(page)-1]
			if len(pages) > 1 {
				name += "-" + strings.Join(slices.Compact([]string{letter(first), letter(last)}), "-to-")
			}
			out[name+".md"] = reference(skill, strings.ReplaceAll(name, "-", " "), page)
			toc.row("["+name+".md]("+name+".md)", fmt.Sprint(len(page)), first.Title.In(lang.EN), last.Title.In(lang.EN))
		}
	}
	out["answers.md"] = written + fmt.Sprintf("# Answers: %s\n\nOne entry for each fact, by topic. To find one: "+
		"`grep -rin -A6 '^## .*WORD' references/`.\n\n%s", skill, toc.String())
	return out
}

// letter returns the first letter or digit of a card's title, by which cards are sorted.
func letter(c cards.Card) string {
	title := strings.ToLower(c.Title.In(lang.EN))
	return strings.TrimLeftFunc(title, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })[:1]
}

// byLetters sorts cards by title. Where one page would be longer than mostOnPage, it divides
// them into pages of similar length, each of which begins with a new letter.
func byLetters(all []cards.Card) [][]cards.Card {
	slices.SortStableFunc(all, func(a, b cards.Card) int {
		return cmp.Or(cmp.Compare(letter(a), letter(b)), cmp.Compare(strings.ToLower(a.Title.In(lang.EN)), strings.ToLower(b.Title.In(lang.EN))))
	})
	total := 0
	for _, c := range all {
		total += len(entry(c))
	}
	parts := 1 + total/mostOnPage
	var pages [][]cards.Card
	length := 0 // of the last page
	for len(all) > 0 {
		n, long := 0, 0
		for n < len(all) && letter(all[n]) == letter(all[0]) {
			long += len(entry(all[n]))
			n++
		}
		if len(pages) == 0 || len(pages) < parts && length+long/2 > total/parts {
			pages, length = append(pages, nil), 0
		}
		last := len(pages) - 1
		pages[last] = append(pages[last], all[:n]...)
		length, all = length+long, all[n:]
	}
	return pages
}

func reference(skill, topic string, list []cards.Card) string {
	var b strings.Builder
	b.WriteString(written)
	fmt.Fprintf(&b, "# %s: %s\n", skill, topic)
	for _, c := range list {
		b.WriteString(entry(c))
	}
	return b.String()
}

// entry returns the text of one card.
func entry(c cards.Card) string {
	text := fmt.Sprintf("\n## %s\n\n%s\n", c.Title.In(lang.EN), c.Text.In(lang.EN))
	if c.URL != "" {
		text += fmt.Sprintf("\n<%s>\n", c.URL)
	}
	return text
}
