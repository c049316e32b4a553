package mcp

import "time"

// ForgetWhenKeysWereRead makes an unknown key worth a fetch again.
func ForgetWhenKeysWereRead(o *OAuth) {
	o.keys.mu.Lock()
	defer o.keys.mu.Unlock()
	o.keys.fetchedAt = time.Now().Add(-keysFresh + time.Minute)
}

// ReadsKeys reports whether a fetch of keys is in progress.
func ReadsKeys(o *OAuth) bool {
	o.keys.mu.Lock()
	defer o.keys.mu.Unlock()
	return o.keys.fetching != nil
}
