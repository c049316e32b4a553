package bot

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge/recipes"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// choicesKeep is how long the values that a cluster offers are cached. choicesWithin is how
// long a form waits for them: Slack lets a form open within three seconds.
const (
	choicesKeep   = 5 * time.Minute
	choicesWithin = 1200 * time.Millisecond
)

// choiceCache caches the values that a person may choose on a cluster.
type choiceCache struct {
	mu   sync.Mutex
	have map[string]cachedChoices
}

type cachedChoices struct {
	choices map[string][]string
	until   time.Time
}

// choices returns the values that a person may choose: the cluster's partitions, accounts, QOS
// and reservations, and the known kinds of GPU and presets. Where the cluster does not answer
// in time, the fields are typed, and its answer serves the next form.
func (b *Bot) choices(ctx context.Context, c *ops.Call, cluster string) map[string][]string {
	key := cluster + "/" + c.Who.User
	b.choiceCache.mu.Lock()
	had, ok := b.choiceCache.have[key]
	b.choiceCache.mu.Unlock()
	if !ok || b.now().After(had.until) {
		found := make(chan map[string][]string, 1)
		asked := *c
		go func() { found <- b.askChoices(context.WithoutCancel(ctx), &asked, key, cluster) }()
		select {
		case had.choices = <-found:
		case <-time.After(choicesWithin):
		}
	}
	all := maps.Clone(had.choices)
	if all == nil {
		all = map[string][]string{}
	}
	all["gpu"], all["preset"] = gpuKinds, presetNames()
	return all
}

// gpuKinds are the kinds of GPU that most clusters have. A pasted text may name others.
var gpuKinds = []string{"a100", "h100", "h200", "b200", "gb200", "b300", "gb300"}

func presetNames() (names []string) {
	for _, p := range job.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// askChoices asks the cluster and caches its answer.
func (b *Bot) askChoices(ctx context.Context, c *ops.Call, key, cluster string) map[string][]string {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	all := map[string][]string{}
	on := ops.OnCluster{Cluster: cluster}
	parts, err := operations.Run[fleet.PartitionsOut](ctx, c, "partitions", &fleet.PartitionsIn{OnCluster: on})
	if err != nil {
		b.log.Info("slack: partitions", "err", err)
	}
	for _, p := range parts.Partitions {
		all["partition"] = append(all["partition"], p.Name)
	}
	rights, err := operations.Run[jobcontrol.AccountsOut](ctx, c, "accounts", &jobcontrol.AccountsIn{OnCluster: on})
	if err != nil {
		b.log.Info("slack: accounts", "err", err)
	}
	for _, x := range rights.Accounts {
		all["account"] = append(all["account"], x.Account)
	}
	for _, q := range rights.QOS {
		all["qos"] = append(all["qos"], q.Name)
	}
	all["reservation"] = b.reservations(ctx, c, cluster, all["account"])
	for field, list := range all {
		slices.Sort(list)
		all[field] = slices.Compact(list)
	}
	b.choiceCache.mu.Lock()
	defer b.choiceCache.mu.Unlock()
	if b.choiceCache.have == nil || len(b.choiceCache.have) > 1000 {
		b.choiceCache.have = map[string]cachedChoices{}
	}
	b.choiceCache.have[key] = cachedChoices{all, b.now().Add(choicesKeep)}
	return all
}

// reservations returns the reservations that a person with these accounts may use and that have
// not ended.
func (b *Bot) reservations(ctx context.Context, c *ops.Call, cluster string, accounts []string) (names []string) {
	reads, ok := c.Clusters[cluster].(interface {
		Reservations(context.Context) ([]slurm.Reservation, error)
	})
	if !ok || c.Who.User == "" {
		return nil
	}
	found, err := reads.Reservations(ctx)
	if err != nil {
		b.log.Info("slack: reservations", "err", err)
	}
	member := func(group string) bool {
		in, err := account.Member(ctx, c.Who.User, group)
		return err == nil && in
	}
	for _, r := range found {
		if (r.End == nil || r.End.After(b.now())) && r.Open(c.Who.User, accounts, member) {
			names = append(names, r.Name)
		}
	}
	return names
}

func (b *Bot) formState(ctx context.Context, a incoming.Ask, c *ops.Call, meta formMeta, values map[string]string, v form.Verdict) form.State {
	s := form.State{
		Values: b.withLong(ctx, a, meta.Base, values), Choices: b.choices(ctx, c, b.people.ClusterOf(ctx, a)), Recipes: recipes.Names(),
		Paste: meta.Paste, Verdict: v, Meta: meta.String(), Gen: meta.Gen,
	}
	if c.Store != nil && c.Who.User != "" {
		if st, err := c.Store(); err == nil {
			subs, err := st.Submissions(ctx, c.Who.User, "", 5)
			b.warn("last runs", err)
			for _, x := range subs {
				if x.JobID != "" {
					s.Runs = append(
						s.Runs,
						form.Choice{Value: form.BeginRun + ":" + x.Cluster + "/" + string(x.JobID), Label: answer.OneLine(x.Name) + " · " + string(x.JobID)},
					)
				}
			}
		}
	}
	return s
}

// formChanged redraws the form after a change: a chosen start fills the fields, and any other
// change has the values checked.
func (b *Bot) formChanged(ctx context.Context, a incoming.Ask, action string) []store.SlackMessage {
	meta, c := b.readMeta(ctx, &a)
	values := a.Fields
	var start map[string]any
	var err error
	switch {
	case action == form.ActBegin && a.Value == form.BeginPaste:
		meta.Paste = true
	case action == form.ActBegin:
		start, err = b.startSpec(ctx, a, c)
	case action == form.ActRead:
		start, err = readPaste(ctx, c, values[form.PasteField])
	}
	if err != nil {
		v := form.VerdictOf(c.Lang, err, nil)
		b.updateView(ctx, a, form.View(b.formState(ctx, a, c, meta, values, v), c.Lang))
		return nil
	}
	if start != nil {
		meta.Gen, meta.Paste = meta.Gen+1, false
		values = map[string]string{}
		maps.Copy(values, a.Fields)
		maps.Copy(values, form.FieldsOfSpec(start))
		if meta.Base, err = b.storeBase(ctx, a, start); err != nil {
			b.log.Error("slack: form", "err", err)
			return nil
		}
		a.Fields = values
	}
	var v form.Verdict
	if action != form.ActBegin || start != nil {
		if op, _, in, errs := b.formCall(ctx, a, c, meta); errs == nil {
			v, _ = b.judgeOnCluster(ctx, c, op, *in)
		} else {
			v = form.ErrorVerdict(errs)
		}
	}
	b.updateView(ctx, a, form.View(b.formState(ctx, a, c, meta, values, v), c.Lang))
	return nil
}

// startSpec returns the specification that the person chose to start from: a run's or a
// recipe's.
func (b *Bot) startSpec(ctx context.Context, a incoming.Ask, c *ops.Call) (map[string]any, error) {
	kind, what, _ := strings.Cut(a.Value, ":")
	if kind == form.BeginRun {
		cluster, id, _ := strings.Cut(what, "/")
		spec, err := b.specOfJob(ctx, c, cluster, slurm.JobID(id))
		if err != nil {
			return nil, err
		}
		return spec, nil
	}
	found, err := operations.Run[launch.RecipesOut](ctx, c, "recipes", &launch.RecipesIn{Do: "render", Recipe: what, GPU: a.Fields["gpu"]})
	if err != nil {
		return nil, err
	}
	return readPaste(ctx, c, found.Spec)
}

// readPaste returns the specification in a text, which is YAML or a script.
func readPaste(ctx context.Context, c *ops.Call, text string) (spec map[string]any, err error) {
	if !looksLikeSpec(text) {
		found, err := operations.Run[launch.ImportOut](ctx, c, "import", &launch.ImportIn{Text: text})
		if err != nil {
			return nil, err
		}
		if len(found.Specs) > 0 {
			text = found.Specs[0]
		}
	}
	if err := job.CheckYAML([]byte(text)); err != nil {
		return nil, ops.FieldErrors(err)
	}
	err = yaml.Unmarshal([]byte(text), &spec)
	return spec, err
}

// storeBase stores the specification that a form starts from, and returns its key.
func (b *Bot) storeBase(ctx context.Context, a incoming.Ask, spec map[string]any) (key string, err error) {
	raw, err := yaml.Marshal(spec)
	if err != nil {
		return "", err
	}
	key = incoming.KeyOf("base", a.Key)
	return key, b.cfg.Store.Put(ctx, record.Base, key, formBase{Owner: a.Team + "/" + a.User, Spec: string(raw)}, b.now().Add(24*time.Hour))
}
