package diagnostics

// The states of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
)

// A check is the result for one thing that doctor has checked.
type check struct {
	// Check is config, server, state, lease, ledger, repository, forge or member.
	Check string `json:"check"`
	// Subject is the name of the checked object, such as a member cluster; empty if the check is about gitfleet itself.
	Subject string `json:"subject,omitempty"`
	State   string `json:"state"`
	Message string `json:"message"`
	// Fix says what to do; empty if nothing has to be done.
	Fix string `json:"fix,omitempty"`
}
