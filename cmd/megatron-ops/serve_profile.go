package main

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// serveProfiles serves Go's profiles, only on a loopback address: profiles reveal what
// the program does, and each costs it time.
func serveProfiles(addr string, log *slog.Logger) (stop func(), err error) {
	refuse := func(message lang.Text) error {
		return &ops.Error{Code: ops.BadInput, Field: "pprof", Message: message, Fix: lang.Same("--pprof 127.0.0.1:6060")}
	}
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().IsLoopback() {
		return nil, refuse(lang.Text{EN: "%q is not a loopback address: profiles are served only to this machine", ZH: "%q 不是回环地址：性能剖析只对本机开放"}.With(addr))
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, refuse(lang.Said(err))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Refuse a page that made a browser resolve its name to this machine (DNS
		// rebinding).
		if host, err := netip.ParseAddrPort(r.Host); err != nil || !host.Addr().IsLoopback() {
			http.Error(w, "profiles are served at "+ln.Addr().String(), http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})}
	log.Info("profiles are served", "at", "http://"+ln.Addr().String()+"/debug/pprof/")
	go func() { _ = server.Serve(ln) }() // ends with the program
	return func() { _ = server.Close() }, nil
}
