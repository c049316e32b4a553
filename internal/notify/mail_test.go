package notify

import (
	"bufio"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mailServer takes mails in plain text at the address, and sends every line it hears until it
// is stopped.
func mailServer(t *testing.T) (address string, heard chan string, stop func()) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	heard = make(chan string, 1000)
	connected := make(chan net.Conn, 1)
	go func() {
		defer close(heard)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		connected <- c
		say := func(s string) { _, _ = io.WriteString(c, s+"\r\n") }
		say("220 test")
		data := false
		for in := bufio.NewScanner(c); in.Scan(); {
			heard <- in.Text()
			switch verb, _, _ := strings.Cut(strings.ToUpper(in.Text()), " "); {
			case data && in.Text() != ".":
			case data:
				data = false
				say("250 taken")
			case verb == "EHLO", verb == "HELO":
				say("250-test")
				say("250-AUTH PLAIN LOGIN")
				say("250 8BITMIME")
			case verb == "DATA":
				data = true
				say("354 go on")
			case verb == "QUIT":
				say("221 bye")
				return
			default:
				say("250 ok")
			}
		}
	}()
	return ln.Addr().String(), heard, func() { (<-connected).Close() }
}

// A message arrives by SMTP as one mail in the chosen language. A password goes only over TLS.
func TestMail(t *testing.T) {
	for user, arrives := range map[string]bool{"": true, "ada": false} {
		address, heard, stop := mailServer(t)
		u := url.URL{Scheme: "smtp", Host: address}
		target := Target{Kind: "mail", From: "ops@example.org", To: []string{"team@example.org"}}
		if user != "" {
			u.User, target.SecretFile = url.User(user), secretFile(t, "hunter2")
		}
		target.URL = u.String()
		n, _ := notifier(t, map[string]Target{"x": target})
		require.NoError(t, n.Tell(t.Context(), failed(t)))
		n.Work(t.Context())
		stop()
		var lines []string
		for line := range heard {
			lines = append(lines, line)
		}
		text := strings.Join(lines, "\n")
		for _, part := range []string{"To: <team@example.org>", "out of memory", "https://ops.example.org/web/jobs/dev/7"} {
			require.Equal(t, arrives, strings.Contains(text, part), "%s: %s", user, text)
		}
		require.NotContains(t, text, "AUTH")
		all, err := n.Backlogs(t.Context())
		require.NoError(t, err)
		require.Equal(t, arrives, all[0].Messages == 0, user)
	}
}
