// Package settings reads the configuration of the daemon: a file, and flags that take precedence.
//
// Config has all settings; its methods return the configurations of the packages that use them.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A setting is one field of the configuration.
type setting struct {
	key   string // key in the file, such as limits.files
	value any    // a pointer to the field
	usage string
	// mayBeZero says that the duration may be zero, which turns something off.
	mayBeZero bool
}

// SetFlag sets any setting, as KEY=VALUE.
const SetFlag = "set"

// settingFlags are the settings with a separate flag, in the order in which help shows them.
// The others are set in the file or with --set.
var settingFlags = []struct{ flag, key string }{
	{"url", "source.url"},
	{"branch", "source.branch"},
	{"path", "source.path"},
	{"interval", "source.interval"},
	{"kubeconfig-dir", "members.kubeconfigDir"},
	{"kubeconfig", "members.kubeconfig"},
	{"state-dir", "stateDir"},
	{"reset-damaged-state", "resetDamagedState"},
	{"fleet-name", "fleetName"},
	{"listen", "listen"},
	{"log-level", "logLevel"},
}

// settings returns all settings, in the order of the fields.
func (c *Config) settings() []setting { return settingsOf("", reflect.ValueOf(c).Elem()) }

// settingsOf returns the settings of a section, whose keys begin with prefix.
func settingsOf(prefix string, section reflect.Value) []setting {
	var all []setting
	for field, value := range section.Fields() {
		name, hasKey := field.Tag.Lookup("key")
		usage, isSetting := field.Tag.Lookup("usage")
		switch {
		case isSetting:
			all = append(all, setting{prefix + name, value.Addr().Interface(), usage, field.Tag.Get("zero") == "off"})
		case hasKey:
			all = append(all, settingsOf(prefix+name+".", value)...)
		}
	}
	return all
}

// settingAnnotation is on a flag that sets a setting, with the key of the setting as its value.
const settingAnnotation = "gitfleet.dev/setting"

// Bind adds --config, --set, and the flags of the settings with these keys to the flags of a
// command. Without keys it adds all flags of settings.
func Bind(f *pflag.FlagSet, config *string, usage string, keys ...string) {
	f.StringVar(config, "config", "", usage)
	defaults := Default()
	settings := defaults.settings()
	for _, own := range settingFlags {
		if len(keys) > 0 && !slices.Contains(keys, own.key) {
			continue
		}
		i := slices.IndexFunc(settings, func(s setting) bool { return s.key == own.key })
		settings[i].bind(f, own.flag)
		f.SetAnnotation(own.flag, settingAnnotation, []string{own.key})
	}
	f.StringArray(SetFlag, nil, "set any setting of the configuration file, as `KEY=VALUE`; may be repeated")
}

// ConfigEnv is the environment variable with the configuration file of the daemon that commands are about.
const ConfigEnv = "GITFLEET_CONFIG"

// BindConfigEnv makes $GITFLEET_CONFIG the default of --config, which Bind has added.
func BindConfigEnv(f *pflag.FlagSet) {
	config := f.Lookup("config")
	config.Usage += "; also $" + ConfigEnv
	config.Value.Set(os.Getenv(ConfigEnv)) // DefValue is the same on every machine, for help
}

// values returns flags that set the fields of c, named by their keys.
func (c *Config) values() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, s := range c.settings() {
		s.bind(f, s.key)
	}
	return f
}

// bind adds a flag for a setting. The first value of a list or mapping replaces the default, and
// further ones are added.
func (s setting) bind(f *pflag.FlagSet, name string) {
	switch v := s.value.(type) {
	case *string:
		f.StringVar(v, name, *v, s.usage)
	case *bool:
		f.BoolVar(v, name, *v, s.usage)
	case *int:
		f.IntVar(v, name, *v, s.usage)
	case *int64:
		f.Int64Var(v, name, *v, s.usage)
	case *metav1.Duration:
		f.DurationVar(&v.Duration, name, v.Duration, s.usage)
	case *[]string:
		f.StringArrayVar(v, name, *v, s.usage)
	case *KindModes:
		given := KindModes{}
		f.Func(name, s.usage, func(text string) error {
			kind, mode, ok := strings.Cut(text, "=")
			if !ok {
				return fmt.Errorf("%q is not KIND=MODE", text)
			}
			given[kind] = driftMode(mode)
			*v = given
			return nil
		})
	case *[]signedPath:
		bindList(f, name, s.usage, v, parseSignedPath, "PATH=SIGNER,SIGNER, followed by ;namespaces=, ;kinds=, ;placements= and ;sharedBases= where they are needed")
	case *[]hostAccess:
		bindList(f, name, s.usage, v, parseHostAccess, "HOST, followed by ;username=, ;passwordFile= and so on where they are needed")
	case *[]gateServer:
		bindList(f, name, s.usage, v, parseGateServer, "URL, followed by ;bearerFile=, ;caBundle= and so on where they are needed")
	case pflag.Value:
		f.Var(v, name, s.usage)
	default:
		panic(fmt.Sprintf("setting %s: no flag can be made of a %T", s.key, v))
	}
}

// bindList adds a flag whose values are parsed, and are the elements of a list.
func bindList[T any](f *pflag.FlagSet, name, usage string, to *[]T, parse func(string) (T, bool), form string) {
	var given []T
	f.Func(name, usage, func(text string) error {
		one, ok := parse(text)
		if !ok {
			return fmt.Errorf("%q is not %s", text, form)
		}
		given = append(given, one)
		*to = given
		return nil
	})
}

// override applies the flags of a command: --set first, and then the flags of single settings.
func (c *Config) override(flags *pflag.FlagSet) error {
	values := c.values()
	var errs []error
	if set := flags.Lookup(SetFlag); set != nil {
		for _, text := range set.Value.(pflag.SliceValue).GetSlice() {
			errs = append(errs, c.assign(values, text))
		}
	}
	flags.Visit(func(f *pflag.Flag) {
		for _, key := range f.Annotations[settingAnnotation] {
			errs = append(errs, values.Lookup(key).Value.Set(f.Value.String()))
			delete(c.lines, key)
		}
	})
	return errors.Join(errs...)
}

// assign applies KEY=VALUE.
func (c *Config) assign(values *pflag.FlagSet, text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("--set %s: write KEY=VALUE, such as limits.files=100", text)
	}
	f := values.Lookup(key)
	if f == nil {
		return fmt.Errorf("--set %s: there is no setting %s%s", text, key, settingMeant(key, settingKeys()))
	}
	maps.DeleteFunc(c.lines, func(line string, _ int) bool {
		return line == key || strings.HasPrefix(line, key+".") || strings.HasPrefix(line, key+"[")
	})
	err := f.Value.Set(value)
	if form := forms[f.Value.Type()]; err != nil && form != "" {
		err = fmt.Errorf("must be %s, is %q", form, value)
	}
	if err != nil {
		return fmt.Errorf("--set %s: %w", text, err)
	}
	return nil
}

// positive reports whether a number is greater than zero, or zero if it may be. Settings that are not
// numbers count as positive.
func (s setting) positive() bool {
	switch v := s.value.(type) {
	case *int:
		return *v > 0
	case *size:
		return *v > 0
	case *metav1.Duration:
		return v.Duration > 0 || s.mayBeZero && v.Duration == 0
	}
	return true
}

// KeysNamed returns the keys of the settings that an unknown flag may stand for: those that end
// in its words. For --limit-file-size it returns limits.fileSize.
func KeysNamed(flag string) []string {
	squash := func(name string) string {
		name = strings.NewReplacer("-", "", ".", "", "limits", "limit", "members", "member").Replace(name)
		return strings.TrimSuffix(strings.ToLower(name), "s")
	}
	word := strings.TrimPrefix(squash(flag), "tls")
	c := Default()
	var keys []string
	for _, s := range c.settings() {
		if strings.HasSuffix(squash(s.key), word) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// A Named is a file or an environment variable that a setting names.
type Named struct{ Key, Name string }

// Named returns the values of all settings whose keys end in a suffix, without empty ones: with
// "File" these are the names of files with keys, certificates and secrets, with "Env" those of
// environment variables with secrets.
func (c *Config) Named(suffix string) []Named {
	var all []Named
	for _, s := range c.settings() {
		if name, ok := s.value.(*string); ok && *name != "" && strings.HasSuffix(s.key, suffix) {
			all = append(all, Named{s.key, *name})
		}
	}
	return append(append(all, namedIn("hosts", c.Hosts, suffix)...), namedIn("gates.servers", c.Gates.Servers, suffix)...)
}

// namedIn returns those of the elements of a list.
func namedIn[T any](list string, elements []T, suffix string) (all []Named) {
	for i := range elements {
		for field, value := range reflect.ValueOf(&elements[i]).Elem().Fields() {
			if key := field.Tag.Get("key"); strings.HasSuffix(key, suffix) && value.Kind() == reflect.String && value.String() != "" {
				all = append(all, Named{fmt.Sprintf("%s[%d].%s", list, i, key), value.String()})
			}
		}
	}
	return all
}

// settingMeant returns the end of a message about an unknown key: the known key that the user
// probably meant, which has a similar spelling, or the same name in another section.
func settingMeant(key string, known []string) string {
	near := api.Closest(key, known)
	if near == "" {
		name := func(key string) string { return key[strings.LastIndex(key, ".")+1:] }
		if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(name(k), name(key)) }); i >= 0 {
			near = known[i]
		}
	}
	if near == "" {
		return ""
	}
	return "; " + api.DidYouMean(near)
}

// settingKeys returns the keys of all settings, in the order of the fields, and of their
// sections.
func settingKeys() []string {
	c := Default()
	var keys []string
	for _, s := range c.settings() {
		parts := strings.Split(s.key, ".")
		for i := range parts {
			if key := strings.Join(parts[:i+1], "."); !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
