package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/placement/api"
)

// flagError says what to use instead of a flag that does not exist: a setting of the
// configuration file, or the flag that the user probably meant.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.GetFlag().Name == "output" {
		return invalid.Unwrap() // which says all
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("%w\nsee \"%s --help\"", err, cmd.CommandPath())
	}
	name := unknown.GetSpecifiedName()
	if keys := settings.KeysNamed(name); len(keys) > 0 && cmd.Flags().Lookup(settings.SetFlag) != nil {
		return fmt.Errorf("--%s is not a flag; set %s in the configuration file, or with --%s KEY=VALUE", name, strings.Join(keys, " or "), settings.SetFlag)
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	text := fmt.Sprintf("--%s is not a flag of \"%s\"", name, cmd.CommandPath())
	if near := api.Closest(name, flags); near != "" {
		return fmt.Errorf("%s; did you mean --%s?", text, near)
	}
	return fmt.Errorf("%s; see \"%s --help\"", text, cmd.CommandPath())
}
