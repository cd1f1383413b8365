package member

// The bounds of the memory. A placement on a cluster is one record of the ledger, which is
// written whenever anything in it changes.
const (
	mostDrifts = 50   // objects of a placement that are not held
	mostHeld   = 1000 // objects of a placement that are held
	mostPaths  = 12   // of an object
	mostValue  = 160
)
