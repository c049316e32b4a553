package mcp

func (s *Server) addPrompts() {}
