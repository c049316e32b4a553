package mcp

import (
	"context"
	"errors"

	sdk "github.com/mark3labs/mcp-go/mcp"
)

// isProtocolError reports whether err is about the protocol, so that its text
// is for the client.
func isProtocolError(err error) bool {
	return errors.Is(err, sdk.ErrInvalidParams) || errors.Is(err, context.Canceled)
}
