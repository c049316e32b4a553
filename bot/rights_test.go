package bot_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func as(user string) map[string]any { return map[string]any{"user_id": user} }

func TestALinkToAJobsPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) {
			c.Page = func(context.Context, ops.Caller) (string, error) { return "https://ops.example.org/once", nil }
			c.Service.PageURL = "https://ops.example.org"
		})
		s.Slash("web 4711 now")
		s.said("web alone, or with one job id: web 4711")
		s.Slash("web 4711")
		s.said("https://ops.example.org/once", "/4711")
	})
}

// Rights come from a person's id, from a user group, and from the members of a channel.
func TestRightsComeByPersonGroupAndChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) {
			c.Policy.Operators = []string{"U5", "S1", "C-ops"}
			c.Policy.Viewers = []string{"C-guests", "T1/U8"}
			c.Policy.Links = map[string]string{"U1": "ada", "U2": "bob", "U5": "o5", "U6": "o6", "U7": "o7", "U8": "g8", "U9": "g9"}
		})
		s.Members(map[string][]string{"S1": {"U6"}, "C-ops": {"U7"}, "C-guests": {"U9"}})
		for user, right := range map[string]string{
			"U2": "owner: may act on your own jobs", "U4": "viewer: may look and ask",
			"U5": "operator", "U6": "operator", "U7": "operator", "U8": "viewer: may look and ask", "U9": "viewer: may look and ask",
		} {
			s.Slash("whoami", as(user))
			s.Wait("the rights of "+user, func(st slacktest.State) bool {
				return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
					return m.Only == user && strings.Contains(text(m), "You here") && strings.Contains(text(m), right)
				})
			})
		}
		job := func(id slurm.JobID) { s.yard.put(slurm.Job{ID: id, Name: "run", User: "ada", State: slurm.Running}) }
		state := func(id slurm.JobID) slurm.State {
			j, err := s.yard.Job(t.Context(), id)
			require.NoError(t, err)
			return j.State
		}
		job("4000")
		for user, says := range map[string]string{"U2": "job 4000 belongs to ada", "U9": "may only read", "U4": "not linked to a cluster user"} {
			s.Slash("cancel 4000 --yes", as(user))
			require.Equal(t, user, s.said(says).Only)
		}
		require.Equal(t, slurm.Running, state("4000"))
		for i, user := range []string{"U1", "U5", "U6", "U7"} {
			id := slurm.JobID([]string{"4001", "4002", "4003", "4004"}[i])
			job(id)
			s.Slash("cancel "+string(id)+" --yes", as(user))
			s.said(string(id), "cancelled")
			require.Equal(t, slurm.Cancelled, state(id))
		}
	})
}

func TestASpecificationComesAsAFileToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		yaml := strings.Trim(spec, "`")
		f := s.File("job.yaml", yaml)
		dm := func(ts, words string, files ...any) {
			s.Event(map[string]any{"type": "message", "subtype": "file_share", "channel_type": "im", "user": "U1", "channel": "D1", "ts": ts, "text": words, "files": files})
		}
		dm("1.000100", "submit", f)
		q := s.said("Please confirm", "2 nodes", "#SBATCH --job-name=gpt")
		yes, id := buttonOf(t, q, "Yes, do it")
		s.Press(q, yes, id, "U1")
		s.said("gpt submitted to yard as job 4711")
		require.Equal(t, 1, s.yard.count())

		dm("1.000200", "", s.File("train.sh", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\nsrun python -m torch.distributed.run --nproc_per_node=8 pretrain_gpt.py\n"))
		s.Wait("what lint finds", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
				return m.Thread == "1.000200" && strings.Contains(text(m), "ntasks-per-node")
			})
		})
	})
}

func TestAnAssistantThreadShowsThatAnAnswerIsComing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "D1", "ts": "1.000200", "thread_ts": "1.000100", "text": "What should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP=4?"})
		answer := s.said("CUDA_DEVICE_MAX_CONNECTIONS=1", "Source")
		require.Equal(t, "1.000100", answer.Thread)
		require.True(t, slices.ContainsFunc(s.State().Calls, func(c slacktest.Call) bool {
			return c.Method == "assistant.threads.setStatus" && c.Answer == "ok" && strings.Contains(slacktest.JSON(c.Args), "looking it up")
		}))
	})
}

// A client that starts a request and sends nothing more is disconnected.
func TestASlowBodyIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		conn, served := net.Pipe()
		defer conn.Close()
		l := onePipe{make(chan net.Conn, 1)}
		l.conns <- served
		srv := &http.Server{Handler: s.bot.Handler()}
		go func() { _ = srv.Serve(l) }()
		defer srv.Close()
		_, err := fmt.Fprint(conn, "POST /slack/commands HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\ntoken=")
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		defer answer.Body.Close()
		require.Equal(t, http.StatusRequestTimeout, answer.StatusCode)
	})
}

// A onePipe listens for connections that a test makes in memory.
type onePipe struct{ conns chan net.Conn }

func (l onePipe) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l onePipe) Close() error {
	close(l.conns)
	return nil
}

func (onePipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
