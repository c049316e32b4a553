package mcp

import (
	"context"
	_ "embed" // the view
	"slices"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
)

// Clients that know MCP Apps draw the answers of some tools in a frame: a job's card
// and its loss curves. The view is one fixed page; the client passes it the tool's
// structured content, which it draws.

const (
	// appExtension is the extension with which a client declares that it draws MCP
	// Apps.
	appExtension = "io.modelcontextprotocol/ui"
	appMIME      = "text/html;profile=mcp-app"
	appURI       = "ui://megatron-ops/job.html"
)

// drawnTools are the tools whose answers the view draws.
var drawnTools = []string{"status", "metrics"}

//go:embed app.html
var appPage string

func (s *Server) addApp() {
	border := map[string]any{"ui": map[string]any{"prefersBorder": true}}
	about := sdk.WithResourceDescription("a job's card and loss curves, for clients that draw MCP Apps")
	s.sdk.AddResource(sdk.NewResource(appURI, "job view", about, sdk.WithMIMEType(appMIME)),
		func(context.Context, sdk.ReadResourceRequest) ([]sdk.ResourceContents, error) {
			return []sdk.ResourceContents{sdk.TextResourceContents{URI: appURI, MIMEType: appMIME, Text: appPage, Meta: border}}, nil
		})
}

// appMeta names the view that draws a tool's answers, or returns nil if the view draws
// none.
func appMeta(tool string) *sdk.Meta {
	if !slices.Contains(drawnTools, tool) {
		return nil
	}
	return &sdk.Meta{AdditionalFields: map[string]any{"ui": map[string]any{"resourceUri": appURI}}}
}

func drawsApps(ctx context.Context) bool {
	settings, _ := capabilitiesIn(ctx).Extensions[appExtension].(map[string]any)
	types, _ := settings["mimeTypes"].([]any)
	return slices.Contains(types, any(appMIME))
}

func capabilitiesIn(ctx context.Context) sdk.ClientCapabilities {
	if info := sdkserver.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		if info.ClientCapabilities == nil {
			return sdk.ClientCapabilities{}
		}
		return *info.ClientCapabilities
	}
	if s, ok := sdkserver.ClientSessionFromContext(ctx).(sdkserver.SessionWithClientInfo); ok {
		return s.GetClientCapabilities()
	}
	return sdk.ClientCapabilities{}
}
