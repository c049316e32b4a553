package ops

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Surface is the interface that a call came through.
type Surface string

// The surfaces.
const (
	Shell   Surface = "shell"
	Chat    Surface = "chat"
	Slack   Surface = "slack"
	MCP     Surface = "mcp"      // over stdio: the caller is the person who runs the process
	MCPHTTP Surface = "mcp-http" // over HTTP: the caller is the bearer of a token
	Web     Surface = "web"      // a browser that is signed in
	Watcher Surface = "watcher"  // this program itself, when it recovers a job
)

// A Caller is the person who asks, as far as their identity is proved.
type Caller struct {
	Surface Surface
	// ID is the proved identity on that surface: the team and user id in Slack, the
	// token's subject over HTTP, and the OS user elsewhere.
	ID string
	// User is the cluster user that the caller acts as. It is empty for a caller who is
	// not linked to one; such a caller may only read and ask.
	User string
	// Operator may act on other people's jobs.
	Operator bool
	// ReadOnly refuses every effect but Read.
	ReadOnly bool
	// Agent names the agent that asks on its person's behalf, such as "claude-code".
	Agent string
}

// A Call is one operation, run for one caller.
type Call struct {
	*Service
	Who  Caller
	Lang lang.Lang
	// Key identifies a call that its surface makes again where this process is stopped before the
	// answer is stored. It is empty where nobody but the caller repeats the call.
	Key string
	// Dir is the folder against which relative paths of the shell resolve. It is empty
	// on other surfaces, which accept absolute paths only.
	Dir string
	// Stdin is what the path "-" reads in the shell.
	Stdin io.Reader
	// Confirmed reports that a person has answered the operation's question with yes.
	Confirmed bool
	// Agreed is the SHA-256, in hex, of the script that a person agreed to; no other
	// script may be submitted. It is empty where nobody was shown a script.
	Agreed string
	// Shown is the Error.Shown of the question that Confirmed answers. It is empty
	// where the question had none.
	Shown string
	// AgreedBy names who agreed, where that was somebody other than the caller.
	AgreedBy string
	// AtEnd, unless it is nil, receives the work that should run after the answer was
	// sent.
	AtEnd func(func() error)
	// MayRead refuses a path that an agent may not read. Where it is nil, only the
	// shell may name paths. Files that a job's id leads to are not checked with it.
	MayRead func(path string) error
	// Roots are the folders that MayRead allows. Files below them are opened by way of
	// the folder, so that no link leads out of it.
	Roots  []string
	effect Effect // the effect of the running operation
	// Progress receives the steps of a long call; it may be nil.
	Progress func(done, total int, what string)
	// Stream receives parts of an answer that arrives bit by bit; where it is nil, the
	// whole answer comes at the end. Width returns the number of columns that the parts
	// currently have; nil or 0 mean no limit.
	Stream func(text string)
	Width  func() int
	// Emit receives the same parts as values, each as it arrives. Where both are set,
	// an operation uses Emit and not Stream.
	Emit func(any)
}

// Step reports how far a long call is.
func (c *Call) Step(done, total int, what string) {
	if c.Progress != nil {
		c.Progress(done, total, what)
	}
}

// stepPace is the interval at which During reports work that reports no steps itself.
const stepPace = 5 * time.Second

// During reports every few seconds that what is still going on, until the caller calls
// done.
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

// RequireYes refuses until a person has confirmed what would happen, by the flag --yes or
// by an answer on their surface.
func (c *Call) RequireYes(yes bool, would lang.Text) error {
	if yes || c.Confirmed {
		return nil
	}
	return ConfirmError(would)
}

// AtShell reports whether the caller types at a terminal of this machine, and so may name
// its files.
func (c *Call) AtShell() bool { return c.Who.Surface == Shell || c.Who.Surface == Chat }

// For returns c prepared to run o, and an error where the caller may not run o,
// whatever the input.
func (c *Call) For(o Op) (*Call, error) {
	own := *c
	own.effect = o.Effect
	return &own, own.authorise(o)
}

// Reading returns c prepared to read only, such as for the parts of a page.
func (c *Call) Reading() *Call {
	own := *c
	own.effect = Read
	return &own
}

// Writing returns c prepared to change something, such as to see what a change would meet
// with the rights that the change will have.
func (c *Call) Writing() *Call {
	own := *c
	own.effect = Write
	return &own
}

// authorise refuses an operation that the caller may not run, whatever the input.
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
			Fix:     c.Who.howToLink(),
		}
	}
	return nil
}

// howToLink says how a caller without a cluster user gets one.
func (w Caller) howToLink() lang.Text {
	if w.Surface == MCPHTTP {
		return lang.Text{EN: "an operator names this token's user in megatron-ops.yaml (mcp.tokens or mcp.oauth.users)", ZH: "请管理员在 megatron-ops.yaml 中写明此令牌对应的用户（mcp.tokens 或 mcp.oauth.users）"}
	}
	return lang.Text{EN: "run `/megatron link` here and follow its one-time code on the cluster", ZH: "请在这里执行 `/megatron link`，并按提示在集群上使用一次性代码"}
}

// audit records who changed what, and the result. Operations that only read are not
// recorded.
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
