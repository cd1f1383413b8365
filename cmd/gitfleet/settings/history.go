package settings

// HistoryConfig limits the history.
type HistoryConfig struct {
	MaxSize size `json:"maxSize,omitempty"`
}

func (h *HistoryConfig) settings() []setting {
	return []setting{
		{"history.maxSize", &h.MaxSize, "what the record of what happened may take in the state directory; the oldest goes first"},
	}
}

// leastHistory is the minimum size, so that the history is not truncated after every few lines.
const leastHistory = 64 << 10
