package settings

import (
	"testing"
)

// A number of clusters and a percentage are distinguished, and anything else is refused, in the
// file as on the command line.
func TestPortionIsANumberOrAPercentage(t *testing.T) {
	tests := map[string]struct {
		yaml, want string // an empty want means that it is refused
	}{
		"3":    {`3`, "3"},
		"0":    {`0`, "0"},
		"20%":  {`"20%"`, "20%"},
		"100%": {`"100%"`, "100%"},
		"101%": {`"101%"`, ""},
		"-1":   {`-1`, ""},
		"":     {`""`, ""},
		"many": {`"many"`, ""},
		"2.5":  {`2.5`, ""},
	}
	for text, test := range tests {
		t.Run(text, func(t *testing.T) {
			var flag portion
			var c Config
			flagErr, fileErr := flag.Set(text), c.parse("gitfleet.yaml", []byte("rollout: {maxUnreachable: "+test.yaml+"}"))
			file := c.Rollout.MaxUnreachable
			if (flagErr == nil) != (test.want != "") || (fileErr == nil) != (test.want != "") {
				t.Fatalf("as a flag: %v; in the file: %v", flagErr, fileErr)
			}
			if test.want != "" && (flag.String() != test.want || file != flag) {
				t.Errorf("as a flag %s, in the file %s, want %s", &flag, &file, test.want)
			}
		})
	}
}
