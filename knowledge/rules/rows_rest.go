package rules

func sequenceRows() []row      { return nil }
func pipelineRows() []row      { return nil }
func hybridRows() []row        { return nil }
func expertRows() []row        { return nil }
func expertOverlapRows() []row { return nil }
func precisionRows() []row     { return nil }
func optimizerRows() []row     { return nil }
func graphRows() []row         { return nil }
func recomputeRows() []row     { return nil }
func checkpointRows() []row    { return nil }
func overlapRows() []row       { return nil }
func dataRows() []row          { return nil }
func noteRows() []row          { return nil }
func launchRows() []row        { return nil }
