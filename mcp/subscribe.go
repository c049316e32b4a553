package mcp

type subscriptions struct{}

func newSubscriptions(*Server) *subscriptions { return &subscriptions{} }
