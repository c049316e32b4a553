package bot_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A surveyedYard has partitions, accounts and QOS too.
type surveyedYard struct{ *yard }

func (surveyedYard) Nodes(context.Context) ([]slurm.Node, error) { return nil, nil }

func (surveyedYard) Partitions(context.Context) ([]slurm.Partition, error) {
	return []slurm.Partition{{Name: "prod", Up: true, GPUs: 8, Idle: 64, Total: 64}, {Name: "dev", Up: true, GPUs: 8, Idle: 4, Total: 4}}, nil
}

func (surveyedYard) Associations(_ context.Context, user string) ([]slurm.Association, error) {
	return []slurm.Association{{Account: "research", User: user, QOS: []string{"normal", "high"}}}, nil
}

func (surveyedYard) QOS(context.Context) ([]slurm.QOS, error) {
	return []slurm.QOS{{Name: "normal"}, {Name: "high"}, {Name: "others"}}, nil
}

func (surveyedYard) Shares(context.Context) ([]slurm.Share, error) { return nil, nil }

func (surveyedYard) Reservations(context.Context) ([]slurm.Reservation, error) {
	now := time.Now()
	past, later := now.Add(-time.Hour), now.Add(time.Hour)
	return []slurm.Reservation{
		{Name: "maint", Users: []string{"root"}, End: &later},
		{Name: "ours", Accounts: []string{"research"}, End: &later},
		{Name: "mine", Users: []string{"ada"}, End: &later},
		{Name: "over", Users: []string{"ada"}, End: &past},
	}, nil
}

func surveyed(c *bot.Config) {
	c.Service.Clusters["yard"] = surveyedYard{c.Service.Clusters["yard"].(*yard)}
}

// change changes something in an open form as a person does: chooses a value or presses a
// button.
func change(s *stage, form map[string]any, action, value string, values map[string]string) {
	s.t.Helper()
	act := map[string]any{"action_id": action, "block_id": "b", "type": "button", "value": value}
	if action == "form_begin" || action == "partition" {
		act = map[string]any{"action_id": action, "block_id": "b", "type": "static_select", "selected_option": map[string]any{"value": value}}
	}
	s.Interact(map[string]any{"actions": []any{act}, "view": map[string]any{
		"id": form["id"], "hash": form["hash"], "callback_id": form["callback_id"], "private_metadata": form["private_metadata"],
		"state": map[string]any{"values": stateOf(values)},
	}})
}

// optionsOf returns the values that a field of a form offers.
func optionsOf(form map[string]any, field string) (values []string) {
	blocks, _ := form["blocks"].([]any)
	for _, x := range blocks {
		b, _ := x.(map[string]any)
		e, _ := b["element"].(map[string]any)
		if e["action_id"] != field {
			continue
		}
		options, _ := e["options"].([]any)
		for _, o := range options {
			values = append(values, o.(map[string]any)["value"].(string))
		}
	}
	return values
}

func TestTheFormOffersWhatTheClusterHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, surveyed)
		s.Slash("submit")
		form := openedForm(s, 1)
		require.Equal(t, []string{"dev", "prod"}, optionsOf(form, "partition"))
		require.Equal(t, []string{"research"}, optionsOf(form, "account"))
		require.Equal(t, []string{"high", "normal"}, optionsOf(form, "qos"), "those of the person's accounts")
		require.Equal(t, []string{"mine", "ours"}, optionsOf(form, "reservation"), "those that ada may use, and that go on")
		require.Contains(t, optionsOf(form, "preset"), "debug-nccl")
		require.Contains(t, slacktest.JSON(form), "recipe:llama3-8b")
	})
}

func TestAFormBegunWithARecipeIsJudgedAtItsFields(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, surveyed)
		s.Slash("submit")
		form := openedForm(s, 1)
		change(s, form, "form_begin", "recipe:llama3-8b", map[string]string{"worktree": "/lustre/m", "partition": "prod", "gpu": "h100"})
		form = shownView(s, form["id"], "--num-layers 32", "/lustre/m", "GiB a GPU")
		require.Contains(t, slacktest.JSON(form), `"initial_value":"llama3-8b"`)
		require.Contains(t, slacktest.JSON(form), `"block_id":"name~1"`, "what was typed before does not hide what was put in")

		// A problem is shown at its field as soon as one leaves the field, and disappears when
		// it is fixed.
		values := map[string]string{
			"name": "gpt", "worktree": "/lustre/m", "nodes": "2", "gpus_per_node": "8", "gpu": "h100", "time": "1:00:00",
			"args": "--num-layers 24 --hidden-size 1024 --num-attention-heads 18 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 64 --train-iters 100 --lr 1e-4 --tensor-model-parallel-size 4",
		}
		change(s, form, "partition", "dev", values)
		form = shownView(s, form["id"], "⛔ --", "16 GPU hours at most")
		require.NotContains(t, slacktest.JSON(form), "No problems found")
		values["args"] = goodForm["args"]
		change(s, form, "form_check", "check", values)
		form = shownView(s, form["id"], "No problems found", "2 × 8 GPUs · 16 GPU hours at most · about")
		values["time"] = ""
		change(s, form, "form_check", "check", values)
		shownView(s, form["id"], "2 × 8 GPUs · as long as the partition allows · about")
		values["time"] = "0"
		change(s, form, "form_check", "check", values)
		shownView(s, form["id"], "2 × 8 GPUs · WITHOUT A TIME LIMIT · about")
	})
}

// pasting opens a form and asks for its field for a text to begin with.
func pasting(t *testing.T) (s *stage, form map[string]any) {
	t.Helper()
	s = play(t, surveyed)
	s.Slash("submit")
	form = openedForm(s, 1)
	change(s, form, "form_begin", "paste", nil)
	return s, shownView(s, form["id"], "Read it into the form")
}

func TestAFormIsBegunWithAPastedScript(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, form := pasting(t)
		change(s, form, "form_read", "read", map[string]string{"text": "#!/bin/bash\n#SBATCH --job-name=old\n#SBATCH --nodes=4\n#SBATCH --partition=prod\n#SBATCH --time=02:00:00\ncd /lustre/ada/Megatron-LM\nsrun python -m torch.distributed.run pretrain_gpt.py --num-layers 24\n"})
		form = shownView(s, form["id"], `"initial_value":"old"`, `"initial_value":"4"`, "--num-layers 24")
		require.NotContains(t, slacktest.JSON(form), "Read it into the form")
	})
}

// A short text with aliases of aliases would be a value larger than the machine's memory.
func TestAPastedSpecificationIsNotExpanded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, form := pasting(t)
		var b strings.Builder
		b.WriteString("name: a\na0: &a0 [x]\n")
		for i := 1; i <= 4; i++ {
			fmt.Fprintf(&b, "a%d: &a%[1]d [%s]\n", i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
		}
		change(s, form, "form_read", "read", map[string]string{"text": b.String()})
		shownView(s, form["id"], "aliases and tags are not taken", "write the value out")
	})
}

// What is too long for a form goes into the job that is submitted by it.
func TestAFormKeepsWhatItCannotShow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		long := strings.Repeat("x", 3100)
		s.Slash("submit --yes " + strings.Replace(spec, "nodes: 2", "nodes: 2\nenv: {NOTE: "+long+"}", 1))
		s.said("submitted to yard as job 4711")
		s.Slash("submit")
		form := openedForm(s, 1)
		change(s, form, "form_begin", "run:yard/4711", nil)
		form = shownView(s, form["id"], "Environment: longer than the 3000 characters")
		filled := maps.Clone(goodForm)
		filled["name"] = "again"
		change(s, form, "form_check", "check", filled) // drawn again from what the person sees
		form = shownView(s, form["id"], `"initial_value":"again"`, "Environment: longer than the 3000 characters")
		require.Equal(t, "update", sendForm(t, s, form, form["callback_id"], form["private_metadata"], filled)["response_action"])
		confirm := shownView(s, form["id"], "Submit this?")
		s.Interact(map[string]any{"type": "view_submission", "view": map[string]any{
			"id": form["id"], "callback_id": confirm["callback_id"], "private_metadata": confirm["private_metadata"], "state": map[string]any{"values": map[string]any{}},
		}})
		s.said("submitted to yard as job 4712")
		sub, err := s.store.ByJob(t.Context(), "yard", "4712")
		require.NoError(t, err)
		require.Contains(t, sub.Script, long)

		docs := s.store.Slack() // a day later
		keys, err := docs.Keys(t.Context(), record.Base, time.Now())
		require.NoError(t, err)
		for _, key := range keys {
			require.NoError(t, docs.Delete(t.Context(), record.Base, key))
		}
		old := sendForm(t, s, form, form["callback_id"], form["private_metadata"], filled)
		require.Equal(t, "errors", old["response_action"], "without the environment it would be another job")
		require.Contains(t, fmt.Sprint(old["errors"]), "begin again from the job")
	})
}

// The flags of a fork go with the form: with one that a job begins, and with the next that its values
// fill. Without them, the arguments that it shows would be refused.
func TestAFormKeepsTheFlagsOfAFork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		filled := maps.Clone(goodForm)
		filled["args"] += " --our-own-flag 3"
		s.Slash("submit")
		form := openedForm(s, 1)
		send := func() map[string]any {
			return sendForm(t, s, form, form["callback_id"], form["private_metadata"], filled)
		}
		require.Equal(t, "errors", send()["response_action"], "nobody knows the flag yet")

		s.Slash("submit --yes " + strings.Replace(spec, "args: [", "extra_flags: [--our-own-flag]\nargs: [--our-own-flag, \"3\", ", 1))
		s.said("submitted to yard as job 4711")
		change(s, form, "form_begin", "run:yard/4711", nil)
		form = shownView(s, form["id"], "--our-own-flag 3", "16 GPU hours at most")
		require.Equal(t, "update", send()["response_action"])
		confirm := shownView(s, form["id"], "Submit this?")
		s.Interact(map[string]any{"type": "view_submission", "view": map[string]any{
			"id": form["id"], "callback_id": confirm["callback_id"], "private_metadata": confirm["private_metadata"], "state": map[string]any{"values": map[string]any{}},
		}})
		s.said("submitted to yard as job 4712")

		s.Slash("submit")
		first := form["id"]
		for id, v := range s.Wait("the next form", func(st slacktest.State) bool { return len(st.Views) == 2 }).Views {
			if id != first {
				form = v
				form["id"] = id
			}
		}
		require.Equal(t, "update", send()["response_action"])
		filled["args"] += " --another-flag"
		require.Equal(t, "errors", send()["response_action"], "another flag is refused as before")
	})
}

func TestAFormIsBegunWithAnEarlierRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, surveyed)
		submitted(t, s)
		s.Slash("submit")
		form := openedForm(s, 1)
		require.Contains(t, slacktest.JSON(form), "run:yard/4711")
		change(s, form, "form_begin", "run:yard/4711", nil)
		shownView(s, form["id"], `"initial_value":"/lustre/m"`, "--tensor-model-parallel-size 4", "16 GPU hours at most")
		s.Slash("submit", map[string]any{"user_id": "U5"}) // another person
		st := s.Wait("their form", func(st slacktest.State) bool { return len(st.Views) == 2 })
		for id, v := range st.Views {
			if id != form["id"] {
				require.NotContains(t, slacktest.JSON(v), "run:yard/4711")
				v["id"] = id
				s.Interact(map[string]any{
					"user": map[string]any{"id": "U5", "team_id": "T1"}, "actions": []any{map[string]any{"action_id": "form_begin", "block_id": "b", "type": "static_select", "selected_option": map[string]any{"value": "run:yard/4711"}}},
					"view": map[string]any{"id": id, "callback_id": "submit", "private_metadata": v["private_metadata"], "state": map[string]any{"values": map[string]any{}}},
				})
				shownView(s, id, "job 4711 belongs to ada")
			}
		}
	})
}

func TestWhatTheClusterRefusesStandsInTheFormAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, surveyed)
		s.Slash("submit")
		form := openedForm(s, 1)
		values := maps.Clone(goodForm)
		values["partition"] = "nowhere"
		a := sendForm(t, s, form, "submit", form["private_metadata"], values)
		require.Equal(t, "update", a["response_action"], "%v", a)
		shownView(s, form["id"], "⛔", "nowhere", `"callback_id":"submit"`)
		require.Zero(t, s.yard.count())
	})
}

// The form shows when Slurm would likely start the job, where the cluster says so.
func TestTheFormSaysWhenAJobWouldLikelyStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for partition, says := range map[string]bool{"prod": true, "dev": false} {
			s := play(t, func(c *bot.Config) {
				c.Service.Clusters["yard"] = fullYard{surveyedYard{c.Service.Clusters["yard"].(*yard)}, new(atomic.Int32)}
			})
			s.Slash("submit")
			form := openedForm(s, 1)
			values := maps.Clone(goodForm)
			values["partition"] = partition
			change(s, form, "form_check", "check", values)
			form = shownView(s, form["id"], "16 GPU hours at most")
			require.Equal(t, says, strings.Contains(slacktest.JSON(form), "likely start <!date^"), partition)
		}
	})
}
