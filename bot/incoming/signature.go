package incoming

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// window is how far a request's time may be from ours, in either direction.
const window = 5 * time.Minute

var (
	errUnsigned = errors.New("no Slack signature")
	errStale    = errors.New("the request's time is more than five minutes from ours: a replay, or a clock that is wrong")
	errForged   = errors.New("the signature is not of our signing secret")
)

// Verify checks Slack's signature of body against each of the secrets; there are two while a
// secret is rotated. slack-go's verifier reads the wall clock and takes one secret.
func Verify(h http.Header, body []byte, now time.Time, secrets ...string) error {
	stamp, sig := h.Get("X-Slack-Request-Timestamp"), h.Get("X-Slack-Signature")
	given, err := hex.DecodeString(strings.TrimPrefix(sig, "v0="))
	if stamp == "" || err != nil || len(given) != sha256.Size || !strings.HasPrefix(sig, "v0=") {
		return errUnsigned
	}
	sec, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return errUnsigned
	}
	if d := now.Sub(time.Unix(sec, 0)); d > window || d < -window {
		return errStale
	}
	good := false
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		if hmac.Equal(given, signature(secret, stamp, body)) {
			good = true
		}
	}
	if !good {
		return errForged
	}
	return nil
}

// signature computes Slack's signature, version 0: HMAC-SHA256 of "v0:time:body".
func signature(secret, stamp string, body []byte) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte("v0:" + stamp + ":"))
	m.Write(body)
	return m.Sum(nil)
}
