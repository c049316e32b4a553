// Package chat is Slack's bot at a terminal: it takes the same words and gives the same
// answers, with cards drawn as text and buttons as numbered choices. People without a workspace
// can try everything here, and people who help others can see what those saw.
package chat

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/terminal"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A Terminal is where a conversation takes place.
type Terminal struct {
	In  io.Reader
	Out io.Writer
	// Prompt is shown before each line that the person types; it is empty where the input is a
	// pipe.
	Prompt string
	Lang   lang.Lang
	// Width returns the present number of columns; nil or 0 means any number.
	Width func() int
	// Every is the time between two looks at submitted jobs; zero means two seconds.
	Every time.Duration
}

var (
	textWelcome = lang.Text{
		EN: "This is the bot of Slack, at your terminal. Type help, a command or a question; a number presses a button; exit ends.",
		ZH: "这是终端里的 Slack 机器人。输入 help、命令或问题；输入数字即点击按钮；输入 exit 退出。",
	}
	textNoChoice  = lang.Text{EN: "there is no choice %d now", ZH: "当前没有选项 %d"}
	textLeft      = lang.Text{EN: "Left as it was.", ZH: "未执行。"}
	textForm      = lang.Text{EN: "Answer each question; an empty line takes what stands in brackets, a dot alone ends the form.", ZH: "请逐项回答；空行表示采用方括号中的值，单独一个点表示退出表单。"}
	textFollowing = lang.Text{EN: "(new lines as they come; Enter ends it)", ZH: "（实时显示新的行；按回车结束）"}
	textBlock     = lang.Text{EN: "(a code block: end it with ```)", ZH: "（代码块：以 ``` 结束）"}
)

// A chat is one conversation in progress.
type chat struct {
	t       Terminal
	talk    *bot.Local
	lines   chan string
	waiting []string // lines that came while another line was being answered
	choices []terminal.Choice
}

// Run talks until the person types exit, the input ends, or ctx ends.
func Run(ctx context.Context, talk *bot.Local, t Terminal) error {
	t.Every = cmp.Or(t.Every, 2*time.Second)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := &chat{t: t, talk: talk, lines: make(chan string)}
	talk.Stream = func(text string) { fmt.Fprint(t.Out, text) }
	talk.Width = t.Width
	go c.read(ctx)
	c.say(textWelcome.In(t.Lang))
	for {
		line, err := c.next(ctx)
		if errors.Is(err, io.EOF) {
			c.show(c.talk.Look(ctx)) // the last changes of jobs
			return nil
		}
		if err != nil {
			return err
		}
		switch strings.TrimSpace(line) {
		case "":
			continue
		case "exit", "quit", "bye", "退出":
			return nil
		}
		if err := c.turn(ctx, line); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// read sends the input's lines to c.lines. It sends the lines of a code block as one text.
func (c *chat) read(ctx context.Context) {
	defer close(c.lines)
	in := bufio.NewScanner(c.t.In)
	in.Buffer(make([]byte, 64<<10), 1<<20)
	var block strings.Builder
	open := false
	for in.Scan() {
		line := in.Text()
		if strings.Count(line, "```")%2 == 1 {
			open = !open
			if open && c.t.Prompt != "" {
				fmt.Fprintln(c.t.Out, textBlock.In(c.t.Lang))
			}
		}
		block.WriteString(line)
		if open {
			block.WriteString("\n")
			continue
		}
		select {
		case c.lines <- block.String():
		case <-ctx.Done():
			return
		}
		block.Reset()
	}
}

// next waits for a line, and meanwhile reports changes of jobs.
func (c *chat) next(ctx context.Context) (string, error) {
	if len(c.waiting) > 0 {
		line := c.waiting[0]
		c.waiting = c.waiting[1:]
		return line, nil
	}
	fmt.Fprint(c.t.Out, c.t.Prompt)
	tick := time.NewTicker(c.t.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case line, ok := <-c.lines:
			if !ok {
				return "", io.EOF
			}
			return line, nil
		case <-tick.C:
			if news := c.talk.Look(ctx); len(news) > 0 {
				fmt.Fprintln(c.t.Out)
				c.show(news)
				fmt.Fprint(c.t.Out, c.t.Prompt)
			}
		}
	}
}

// turn answers one line.
func (c *chat) turn(ctx context.Context, line string) error {
	r := c.answer(ctx, line)
	c.show(r.Said)
	for len(r.Fields) > 0 {
		values, ok, err := c.form(ctx, r)
		if err != nil || !ok {
			return err
		}
		r = c.talk.Fill(ctx, values)
		c.show(r.Said)
	}
	return nil
}

// answer presses the button with the typed number, or passes the words on.
func (c *chat) answer(ctx context.Context, line string) bot.Reply {
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil && slices.Contains(strings.Fields(line), "--follow") {
		return c.follow(ctx, line)
	}
	if err != nil {
		return c.talk.Type(ctx, line)
	}
	if n > 20 { // a job's id, not the number of a button
		return c.talk.Type(ctx, line)
	}
	if n < 1 || n > len(c.choices) {
		c.say(fmt.Sprintf(textNoChoice.In(c.t.Lang), n))
		return bot.Reply{}
	}
	return c.talk.Press(ctx, c.choices[n-1])
}

// follow answers a line whose answer continues until the person types the next line.
func (c *chat) follow(ctx context.Context, line string) bot.Reply {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c.say(textFollowing.In(c.t.Lang))
	answer := make(chan bot.Reply, 1)
	go func() { answer <- c.talk.Type(ctx, line) }()
	for lines := c.lines; ; {
		select {
		case r := <-answer:
			return r
		case next, ok := <-lines:
			if !ok { // the pipe has ended: wait for the answer
				lines = nil
				continue
			}
			c.waiting = append(c.waiting, next)
			stop()
		}
	}
}

// form asks for the fields of a form one by one; ok is false where the person leaves the form.
// After errors it asks again only for the fields that had one.
func (c *chat) form(ctx context.Context, r bot.Reply) (values map[string]string, ok bool, err error) {
	if r.Errors == nil {
		c.say(textForm.In(c.t.Lang))
	}
	values = map[string]string{}
	for _, f := range r.Fields {
		values[f.Name] = f.Value
		wrong, again := r.Errors[f.Name]
		if r.Errors != nil && !again {
			continue
		}
		if again {
			c.say("✗ " + f.Label + ": " + wrong)
		}
		hint := f.Hint
		if len(f.Choices) > 0 {
			hint = strings.Join(f.Choices, ", ")
		}
		if hint != "" {
			hint = " (" + hint + ")"
		}
		fmt.Fprint(c.t.Out, c.wrapped(fmt.Sprintf("%s%s [%s]:", f.Label, hint, f.Value))+" ")
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case line, open := <-c.lines:
			if !open {
				return nil, false, io.EOF
			}
			switch line = strings.TrimSpace(line); line {
			case ".":
				c.say(textLeft.In(c.t.Lang))
				return nil, false, nil
			case "":
			default:
				values[f.Name] = line
			}
		}
	}
	return values, true, nil
}

// show prints what the bot says and numbers its buttons. Numbers of earlier messages become
// invalid.
func (c *chat) show(said []terminal.Message) {
	if len(said) > 0 {
		c.choices = nil
	}
	for _, s := range said {
		if s.Text != "" {
			fmt.Fprintln(c.t.Out, s.Text)
		}
		var row []string
		for _, x := range s.Choices {
			c.choices = append(c.choices, x)
			label := strings.ReplaceAll(x.Label, " ", unbroken)
			row = append(row, fmt.Sprintf("[%d]%s%s", len(c.choices), unbroken, label))
		}
		if len(row) > 0 {
			c.say(strings.Join(row, "   "))
		}
	}
}

// unbroken is a space at which wrapped does not break a line.
const unbroken = "\u00a0"

// say prints a text of the terminal's own.
func (c *chat) say(text string) { fmt.Fprintln(c.t.Out, c.wrapped(text)) }

// wrapped breaks text into lines that fit the terminal.
func (c *chat) wrapped(text string) string {
	width := 0
	if c.t.Width != nil {
		width = c.t.Width()
	}
	return strings.ReplaceAll(view.Prose("", text, width), unbroken, " ")
}
