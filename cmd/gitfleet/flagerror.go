package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/placement/api"
)

// flagError says what to write instead of a flag that does not exist: a setting
// of the configuration file, or the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("%w\nsee \"%s --help\"", err, cmd.CommandPath())
	}
	name := unknown.GetSpecifiedName()
	if keys := settingsCalled(name); len(keys) > 0 && cmd.Flags().Lookup(setFlag) != nil {
		return fmt.Errorf("--%s is not a flag; set %s in the configuration file, or with --%s KEY=VALUE", name, strings.Join(keys, " or "), setFlag)
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	text := fmt.Sprintf("--%s is not a flag of \"%s\"", name, cmd.CommandPath())
	if near := api.Closest(name, flags); near != "" {
		return fmt.Errorf("%s; did you mean --%s?", text, near)
	}
	return fmt.Errorf("%s; see \"%s --help\"", text, cmd.CommandPath())
}

// settingsCalled are the keys of the settings that a flag could be for: those
// that end in its words. --limit-file-size is for limits.fileSize.
func settingsCalled(flag string) []string {
	squash := func(name string) string {
		name = strings.NewReplacer("-", "", ".", "", "limits", "limit", "members", "member").Replace(name)
		return strings.TrimSuffix(strings.ToLower(name), "s")
	}
	word := strings.TrimPrefix(squash(flag), "tls")
	c := defaultConfig()
	var keys []string
	for _, s := range c.settings() {
		if strings.HasSuffix(squash(s.key), word) {
			keys = append(keys, s.key)
		}
	}
	return keys
}
