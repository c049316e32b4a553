package mcp

import (
	"context"

	sdk "github.com/mark3labs/mcp-go/mcp"
)

type completer struct{ s *Server }

func (c completer) CompletePromptArgument(context.Context, string, sdk.CompleteArgument, sdk.CompleteContext) (*sdk.Completion, error) {
	return &sdk.Completion{Values: []string{}}, nil
}

func (c completer) CompleteResourceArgument(context.Context, string, sdk.CompleteArgument, sdk.CompleteContext) (*sdk.Completion, error) {
	return &sdk.Completion{Values: []string{}}, nil
}
