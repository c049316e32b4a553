package bot

import (
	"context"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Somebody who submits in a shell asks for the job's card in the script itself:
// "#MEGATRON slack=#runs", or "slack:#runs" as the value of --mail-user or --comment.
// "me" is the person who is linked to the job's owner.

// wish is what a script asks for.
var wish = lazy.New(`(?m)^#(?:MEGATRON[ \t]+slack=|SBATCH[ \t]+(?:--mail-user|--comment)[= \t]["']?slack:)(#[\p{L}0-9_-]{1,80}|[CGU][A-Z0-9]{1,20}|me)\b`)

// scriptsAtOnce is how many scripts are read in one look.
const scriptsAtOnce = 20

// wishes reads the scripts of jobs that were not looked at before, of people who are
// linked, and follows those that ask for it.
func (b *Bot) wishes(ctx context.Context, jobs []slurm.Job) {
	left := scriptsAtOnce
	linked := map[string][]card.Place{}
	for _, j := range jobs {
		id := card.ID(j.Cluster, j.ID)
		if b.scriptsRead[id] || left == 0 {
			continue
		}
		people, asked := linked[j.User]
		if !asked {
			people = b.peopleOf(ctx, j.User)
			linked[j.User] = people
		}
		if len(people) == 0 {
			continue // they may be linked later
		}
		if b.scriptsRead == nil || len(b.scriptsRead) > 100_000 {
			b.scriptsRead = map[string]bool{}
		}
		b.scriptsRead[id] = true
		var read bool
		if known, err := b.cfg.Store.Get(ctx, docScriptRead, id, b.now(), &read); err != nil || known {
			continue
		}
		left--
		script, ok := b.scriptOf(ctx, j)
		if !ok {
			continue
		}
		if err := b.cfg.Store.Put(ctx, docScriptRead, id, true, b.now().AddDate(0, 0, 7)); err != nil {
			b.log.Warn("slack: script", "job", j.ID, "err", err)
			continue
		}
		for _, m := range wish.FindAllStringSubmatch(script, 5) {
			for _, p := range placesWished(m[1], people) {
				s := subscription{subject: "job/" + id, place: p}
				if err := b.cfg.Store.Put(ctx, docFollow, s.key(), people[0].Channel, b.now().AddDate(0, 1, 0)); err != nil {
					b.log.Warn("slack: script", "job", j.ID, "err", err)
				}
			}
		}
	}
}

// placesWished are the places that a wish names: a channel, or the owner themselves;
// nobody else is written to because of somebody's script.
func placesWished(to string, people []card.Place) []card.Place {
	switch {
	case to == "me":
		return people
	case to[0] == 'U':
		return slices.DeleteFunc(slices.Clone(people), func(p card.Place) bool { return p.Channel != to })
	}
	return []card.Place{{Team: people[0].Team, Channel: to}}
}

// scriptOf is the script of a job, read as its owner.
func (b *Bot) scriptOf(ctx context.Context, j slurm.Job) (script string, ok bool) {
	cl, s := b.cfg.Service.Clusters[j.Cluster], b.cfg.Service
	if j.User != s.Self && s.As != nil {
		var err error
		if cl, err = s.As(cl, j.User); err != nil {
			return "", false
		}
	}
	reads, ok := cl.(interface {
		BatchScript(context.Context, slurm.JobID) (string, error)
	})
	if !ok {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	script, err := reads.BatchScript(ctx, j.ID)
	if err != nil {
		b.log.Debug("slack: script", "job", j.ID, "err", err)
	}
	return script, err == nil
}
