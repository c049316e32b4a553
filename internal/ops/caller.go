package ops

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Surface is the door that a call came through.
type Surface string

// The doors.
const (
	Shell   Surface = "shell"
	Chat    Surface = "chat"
	Slack   Surface = "slack"
	MCP     Surface = "mcp"      // stdio: the person who runs it
	MCPHTTP Surface = "mcp-http" // a bearer's
	Web     Surface = "web"      // a browser that is signed in
	Watcher Surface = "watcher"  // the product's own recovery
)

// A Caller is who asks, as far as it is proved.
type Caller struct {
	Surface Surface
	// ID is the proved identity on that surface: team and user id in Slack, the
	// token's subject over HTTP, the OS user elsewhere.
	ID string
	// User is the cluster user that the caller acts as; empty: not linked, may
	// read and ask only.
	User string
	// Operator may act on other people's jobs.
	Operator bool
	// ReadOnly refuses every effect but Read.
	ReadOnly bool
	// Agent names the agent that asks for its person, such as "claude-code".
	Agent string
}

// A Call is one operation being carried out for one caller.
type Call struct {
	*Service
	Who  Caller
	Lang lang.Lang
	// Dir is where relative paths of the shell resolve; empty on other surfaces,
	// which take absolute paths only.
	Dir string
	// Stdin is what "-" reads in the shell.
	Stdin io.Reader
	// Confirmed reports that a person has said yes to what would be asked.
	Confirmed bool
	// Agreed is the SHA-256, in hex, of the script that was agreed to: no other is
	// submitted. Empty: none was shown.
	Agreed string
	// Shown is the Error.Shown of the question that Confirmed answers; empty: nothing
	// of the kind was shown.
	Shown string
	// AgreedBy is who said yes to it, where that was somebody else than the caller.
	AgreedBy string
	// AtEnd, where it is not nil, is given what is left to do once the answer is
	// out.
	AtEnd func(func() error)
	// MayRead refuses a path that an agent named; nil: paths mean files in the
	// shell only. What is found by a job's id is not asked about.
	MayRead func(path string) error
	// Roots are the folders that MayRead allows: what it allowed is opened by way
	// of them.
	Roots  []string
	effect Effect // of the operation that is carried out
	// Progress is told of steps on long calls; nil is fine.
	Progress func(done, total int, what string)
	// Stream is given parts of an answer that comes bit by bit; nil: all of it comes at
	// the end. Width is how many columns they have now; nil or 0: any number.
	Stream func(text string)
	Width  func() int
	// Emit is given parts of an answer as values, each as it comes; before Stream.
	Emit func(any)
}

// Step tells whoever waits how far a long call is.
func (c *Call) Step(done, total int, what string) {
	if c.Progress != nil {
		c.Progress(done, total, what)
	}
}

// stepPace is between two steps of work that tells of none itself.
const stepPace = 5 * time.Second

// During tells, every few seconds, that what is still going on, until done is
// called.
func (c *Call) During(what string) (done func()) {
	if c.Progress == nil {
		return func() {}
	}
	began, stop := time.Now(), make(chan struct{})
	c.Step(0, 0, what)
	var told sync.WaitGroup
	told.Go(func() {
		tick := time.NewTicker(stepPace)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				c.Step(int(now.Sub(began).Seconds()), 0, what)
			}
		}
	})
	return func() { close(stop); told.Wait() }
}

// For is c as it carries o out, or the refusal of what the caller may not do
// whatever the input is.
func (c *Call) For(o Op) (*Call, error) {
	own := *c
	own.effect = o.Effect
	return &own, own.authorise(o)
}

// Reading is c as it looks something up beside an operation: a page's parts.
func (c *Call) Reading() *Call {
	own := *c
	own.effect = Read
	return &own
}

// authorise refuses what the caller may not do whatever the input is.
func (c *Call) authorise(o Op) error {
	if o.Effect == Read {
		return nil
	}
	if c.Who.ReadOnly {
		return &Error{
			Code:    NotAllowed,
			Message: lang.Text{EN: "%s changes something, and this connection may only read", ZH: "%s 会修改内容，而此连接只有读权限"}.With(o.Name),
			Fix:     lang.Text{EN: "use a connection with write rights: a bearer token over HTTP, or the shell", ZH: "请使用有写权限的连接：带令牌的 HTTP，或 shell"},
		}
	}
	if c.Who.User == "" {
		return &Error{
			Code:    NotAllowed,
			Message: lang.Text{EN: "you are not linked to a cluster user yet, so you can read and ask but not %s", ZH: "您尚未绑定集群用户，只能查看和提问，不能执行 %s"}.With(o.Name),
			Fix:     lang.Text{EN: "run `/megatron link` here and follow its one-time code on the cluster", ZH: "请在这里执行 `/megatron link`，并按提示在集群上使用一次性代码"},
		}
	}
	return nil
}

// audit writes down who changed what, and what came of it.
func (c *Call) audit(ctx context.Context, o Op, in, out any, err error) {
	if o.Effect == Read || c.Service == nil || c.Audit == nil {
		return
	}
	agreed := c.AgreedBy
	if agreed == "" && c.Confirmed {
		agreed = "self"
	}
	c.Audit(ctx, AuditEntry{At: c.Now(), Who: c.Who, Op: o.Name, In: in, Out: out, Err: err, Agreed: agreed})
}
