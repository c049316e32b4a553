package jobnews

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A person who submits in a shell can ask for the job's card in the script itself, by
// "#MEGATRON slack=#runs", or by "slack:#runs" as the value of --mail-user or --comment. "me"
// means the person who is linked to the job's owner. A channel gets the card only where the
// owner is a member, so that a script cannot write to a channel that its owner cannot see.

var textNotThere = lang.Text{
	EN: "Job %s asks for its card in %s, but it was not sent there: you are not in that channel, or it is private and I am not in it. Join it and submit again, or write slack=me.",
	ZH: "作业 %s 要求把卡片发到 %s，但未发送：您不在该频道，或该频道是私有频道而我不在其中。请加入后重新提交，或写 slack=me。",
}

// cardRequest matches the line in which a script asks for its job's card; its group is the
// place.
var cardRequest = lazy.New(`(?m)^#(?:MEGATRON[ \t]+slack=|SBATCH[ \t]+(?:--mail-user|--comment)[= \t]["']?slack:)(#[\p{L}0-9_-]{1,80}|[CGU][A-Z0-9]{1,20}|me)\b`)

const scriptsAtOnce = 20

// followScriptRequests reads the scripts of jobs whose owners are linked and whose scripts were
// not read before, and follows the jobs that ask for their card.
func (nf *Notifier) followScriptRequests(ctx context.Context, jobs []slurm.Job) {
	left := scriptsAtOnce
	linked := map[string][]card.Place{}
	for _, j := range jobs {
		id := card.ID(j.Cluster, j.ID)
		if nf.scriptsRead[id] || left == 0 {
			continue
		}
		people, asked := linked[j.User]
		if !asked {
			people = nf.people.PeopleOf(ctx, j.User)
			linked[j.User] = people
		}
		if len(people) == 0 {
			continue // they may be linked later
		}
		if nf.scriptsRead == nil || len(nf.scriptsRead) > 100_000 {
			nf.scriptsRead = map[string]bool{}
		}
		nf.scriptsRead[id] = true
		var read bool
		if known, err := nf.cfg.Store.Get(ctx, record.ScriptRead, id, nf.now(), &read); err != nil || known {
			continue
		}
		left--
		script, ok := nf.scriptOf(ctx, j)
		if !ok {
			continue
		}
		if !nf.followAsAsked(ctx, j, script, people) {
			delete(nf.scriptsRead, id) // Slack did not list the channels; the next look asks again
			continue
		}
		nf.logError(slog.LevelWarn, "slack: script", nf.cfg.Store.Put(ctx, record.ScriptRead, id, true, nf.now().AddDate(0, 0, 7)), "job", j.ID)
	}
}

// followAsAsked follows a job in the places that its script asks for, and tells the owner about
// places that do not get the card; ok is false where Slack could not be asked.
func (nf *Notifier) followAsAsked(ctx context.Context, j slurm.Job, script string, people []card.Place) (ok bool) {
	for _, m := range cardRequest.FindAllStringSubmatch(script, 5) {
		places, err := nf.placesRequested(ctx, m[1], people)
		if err != nil {
			nf.log.Warn("slack: channels of a person", "job", j.ID, "err", err)
			return false
		}
		if len(places) == 0 && m[1][0] != 'U' {
			nf.logError(slog.LevelWarn, "slack: script", nf.Note(ctx, j, "channel "+m[1], textNotThere.With(j.ID, m[1])), "job", j.ID)
		}
		for _, p := range places {
			s := subscription{subject: "job/" + card.ID(j.Cluster, j.ID), place: p}
			nf.logError(slog.LevelWarn, "slack: script", nf.cfg.Store.Put(ctx, record.Follow, s.key(), people[0].Channel, nf.now().AddDate(0, 1, 0)), "job", j.ID)
		}
	}
	return true
}

// placesRequested returns the places that a script may name: a channel that the owner is in, or
// the owner. A script cannot make the bot write to anybody else.
func (nf *Notifier) placesRequested(ctx context.Context, to string, people []card.Place) ([]card.Place, error) {
	switch {
	case to == "me":
		return people, nil
	case to[0] == 'U':
		return slices.DeleteFunc(slices.Clone(people), func(p card.Place) bool { return p.Channel != to }), nil
	}
	for _, p := range people {
		id, err := nf.channelOf(ctx, p, to)
		if err != nil {
			return nil, err
		}
		if id != "" {
			return []card.Place{{Team: p.Team, Channel: id}}, nil
		}
	}
	return nil, nil
}

// channelOf returns the id of the channel with that name or id that a person is in. It is empty
// where they are not in it, or where the channel is private and the bot is not in it. The id is
// stored instead of the name, which may later belong to another channel.
func (nf *Notifier) channelOf(ctx context.Context, person card.Place, channel string) (id string, err error) {
	api, err := nf.cfg.Client(ctx, person.Team)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	q := slack.GetConversationsForUserParameters{
		UserID: person.Channel, Types: []string{"public_channel", "private_channel"}, ExcludeArchived: true, Limit: 999,
	}
	for {
		list, next, err := api.GetConversationsForUserContext(ctx, &q)
		if err != nil {
			return "", err
		}
		for _, c := range list {
			if c.ID == channel || "#"+c.Name == strings.ToLower(channel) {
				return c.ID, nil
			}
		}
		if next == "" {
			return "", nil
		}
		q.Cursor = next
	}
}

// scriptOf returns the script of a job, read with the rights of its owner.
func (nf *Notifier) scriptOf(ctx context.Context, j slurm.Job) (script string, ok bool) {
	cl, s := nf.cfg.Service.Clusters[j.Cluster], nf.cfg.Service
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
	nf.logError(slog.LevelDebug, "slack: script", err, "job", j.ID)
	return script, err == nil
}
