package compare

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// What is to be compared is named, and limits are validated as by the daemon.
func TestInvalidArguments(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"valid":          {[]string{"--path", ".", "--kubeconfig-dir", "members"}, ""},
		"two sources":    {[]string{"--path", ".", "--commit", "main"}, "--path and --commit exclude each other"},
		"no source":      {nil, "nothing to compare: set --config gitfleet.yaml, or $GITFLEET_CONFIG, for its repository"},
		"no members":     {[]string{"--path", "."}, "the kubeconfigs of the members are missing"},
		"negative limit": {[]string{"--path", ".", "--kubeconfig-dir", "members", "--set", "limits.files=-1"}, "limits.files: must be more than zero"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, flags := &diffCommand{}, pflag.NewFlagSet("diff", pflag.ContinueOnError)
			d.bind(flags)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			switch _, err := d.read(flags); {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
