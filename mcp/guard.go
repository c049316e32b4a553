package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
)

// A guard wraps every handler.
type guard struct{ log *slog.Logger }

// errInternal is all that a client learns of a bug of ours.
var errInternal = fmt.Errorf("internal error: the server's log has the details")

// recovered turns a panic into errInternal. The panic's text and stack, which may
// contain a user's data, go to the log only.
func (g guard) recovered(what string, err *error) {
	if r := recover(); r != nil {
		if g.log != nil {
			g.log.Error("panic", "in", what, "value", fmt.Sprint(r), "stack", string(debug.Stack()))
		}
		*err = errInternal
	}
}

func (g guard) tool(next sdkserver.ToolHandlerFunc) sdkserver.ToolHandlerFunc {
	return func(ctx context.Context, req sdk.CallToolRequest) (res *sdk.CallToolResult, err error) {
		defer g.recovered("tool "+req.Params.Name, &err)
		res, err = next(ctx, req)
		awaitNotifications(ctx)
		noteMissingCapability(ctx, err)
		if req.Params.Task == nil {
			err = finalError(ctx, err)
		}
		return res, err
	}
}

func (g guard) resource(next sdkserver.ResourceHandlerFunc) sdkserver.ResourceHandlerFunc {
	return func(ctx context.Context, req sdk.ReadResourceRequest) (res []sdk.ResourceContents, err error) {
		defer g.recovered("resource", &err)
		res, err = next(ctx, req)
		return res, finalError(ctx, err)
	}
}

func (g guard) prompt(next sdkserver.PromptHandlerFunc) sdkserver.PromptHandlerFunc {
	return func(ctx context.Context, req sdk.GetPromptRequest) (res *sdk.GetPromptResult, err error) {
		defer g.recovered("prompt "+req.Params.Name, &err)
		res, err = next(ctx, req)
		return res, finalError(ctx, err)
	}
}

// progress returns a function that sends progress notifications, or nil if the request
// did not ask for them.
func progress(ctx context.Context, req sdk.CallToolRequest) func(done, total int, what string) {
	if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
		return nil
	}
	token, server := req.Params.Meta.ProgressToken, sdkserver.ServerFromContext(ctx)
	var mu sync.Mutex
	last := -1.0
	return func(done, total int, what string) {
		mu.Lock()
		defer mu.Unlock()
		at := float64(done)
		if at <= last { // each value must be greater than the one before
			at = last + 0.001
		}
		last = at
		params := map[string]any{"progressToken": token, "progress": at}
		if total > 0 {
			params["total"] = total
		}
		if what != "" {
			params["message"] = plain(what)
		}
		// A client that went away or reads too slowly misses its progress and nothing
		// else.
		if server.SendNotificationToClient(ctx, "notifications/progress", params) == nil {
			Notified(ctx)
		}
	}
}

// warnings is a log handler that drops records below a warning.
type warnings struct{ slog.Handler }

// Enabled reports whether a record of that level is passed on.
func (h warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}
