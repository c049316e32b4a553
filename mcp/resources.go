package mcp

// jobSchemaURI is the resource with the whole job specification's schema.
const jobSchemaURI = "megatron-ops://schema/job"

func (s *Server) addResources() {}
