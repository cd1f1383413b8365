// Package settings reads the configuration of the daemon: a file, and flags that take precedence.
//
// Config has all settings; its methods return the configurations of the packages that use them.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A setting is one field of the configuration.
type setting struct {
	key   string // key in the file, such as limits.files
	value any    // a pointer to the field
	usage string
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
	{"fleet-name", "fleetName"},
	{"listen", "listen"},
	{"log-level", "logLevel"},
}

// settings returns all settings, in the order of the documentation.
func (c *Config) settings() []setting {
	all := []setting{
		{"fleetName", &c.FleetName, "name of this fleet, the value of the managed-by label on members; derived from the repository at the first start if not set; it cannot be changed later"},
		{"stateDir", &c.StateDir, "directory for the clone, the ledger and the history"},
		{"listen", &c.Listen, "address to answer on"},
		{"logLevel", &c.LogLevel, "debug, info, warn or error"},
		{"logFormat", &c.LogFormat, "text or json"},
		{"tracing.endpoint", &c.Tracing.Endpoint, "URL of an OpenTelemetry collector, such as http://HOST:4318, that takes a trace of each commit"},
	}
	all = append(all, c.Server.settings()...)
	all = append(all, c.Source.settings()...)
	all = append(all, c.Source.Signatures.settings()...)
	all = append(all, c.Webhook.settings()...)
	all = append(all, c.Limits.settings()...)
	all = append(all, c.Members.settings()...)
	all = append(all, c.History.settings()...)
	all = append(all, c.Status.settings()...)
	all = append(all, c.Rollout.settings()...)
	all = append(all, c.Drift.settings()...)
	all = append(all, c.PullRequests.settings()...)
	all = append(all, c.Forge.settings()...)
	return append(all, c.Availability.settings()...)
}

func (r *RolloutConfig) settings() []setting {
	return []setting{
		{"rollout.maxUnreachable", &r.MaxUnreachable,
			"how many clusters that do not answer no rollout waits for: a number, or a percentage of those a placement wants"},
		{"rollout.availableTimeout", &r.AvailableTimeout,
			"how long a cluster may take to become available before its update counts as failed; 0 for any time"},
		{"rollout.podFailureTimeout", &r.PodFailureTimeout,
			"how long the pods of a workload may be unable to start before it counts as failed"},
	}
}

func (s *SourceConfig) settings() []setting {
	return append([]setting{
		{"source.url", &s.URL, "repository: https://…, ssh://…, user@host:path"},
		{"source.branch", &s.Branch, "branch to follow; the remote's default branch if no reference is set"},
		{"source.tag", &s.Tag, "tag to follow"},
		{"source.semver", &s.SemVer, "range of tags to follow, such as \">=1.2 <2\": the highest in it"},
		{"source.commit", &s.Commit, "commit to stay at, by its whole hash"},
		{"source.path", &s.Path, "directory of the repository that is the hub"},
		{"source.interval", &s.Interval, "time between two polls"},
	}, s.credentials()...)
}

// credentials returns the settings about access to a repository.
func (s *SourceConfig) credentials() []setting {
	return []setting{
		{"source.tokenFile", &s.TokenFile, "file with an access token for the repository"},
		{"source.tokenEnv", &s.TokenEnv, "environment variable with an access token"},
		{"source.bearerFile", &s.BearerFile, "file with a token to send as Authorization: Bearer"},
		{"source.bearerEnv", &s.BearerEnv, "environment variable with such a token"},
		{"source.username", &s.Username, "user name that goes with the token or password"},
		{"source.passwordFile", &s.PasswordFile, "file with a password for the repository"},
		{"source.passwordEnv", &s.PasswordEnv, "environment variable with a password"},
		{"source.sshKeyFile", &s.SSHKeyFile, "file with a private key for ssh://"},
		{"source.sshKeyEnv", &s.SSHKeyEnv, "environment variable with a private key"},
		{"source.sshPassphraseFile", &s.SSHPassphraseFile, "file with the passphrase of the private key"},
		{"source.sshPassphraseEnv", &s.SSHPassphraseEnv, "environment variable with the passphrase"},
		{"source.sshKnownHosts", &s.SSHKnownHosts, "known_hosts file with the key of the Git server; required for ssh://"},
		{"source.caBundle", &s.CABundle, "PEM file of certificates to trust for https://, beside the system's"},
		{"source.githubAppID", &s.GitHubAppID, "ID of a GitHub App to authenticate as"},
		{"source.githubAppInstallation", &s.GitHubAppInstallation, "ID of the App's installation"},
		{"source.githubAppKeyFile", &s.GitHubAppKeyFile, "file with the App's private key"},
		{"source.githubAppKeyEnv", &s.GitHubAppKeyEnv, "environment variable with the App's private key"},
		{"source.githubAppAPIURL", &s.GitHubAppAPIURL, "API of GitHub Enterprise Server, https://HOST/api/v3"},
		{"source.allowHTTP", &s.AllowHTTP, "allow http:// for the repository, where anybody on the way can change what the fleet runs"},
		{"source.allowFile", &s.AllowFile, "allow file:// and paths for the repository"},
	}
}

func (s *SignaturesConfig) settings() []setting {
	return []setting{
		{"source.signatures.openPGP", &s.OpenPGP, "file of OpenPGP public keys whose signatures count; may be repeated"},
		{"source.signatures.allowedSigners", &s.AllowedSigners, "file of SSH keys whose signatures count, in the format of ssh-keygen"},
		{"source.signatures.paths", &s.Paths, "who may change files below a path, as PATH=SIGNER,SIGNER; may be repeated; every signer may change everything if there is none"},
		{"source.signatures.since", &s.Since, "commit after which everything must be signed"},
		{"source.signatures.allowRewrite", &s.AllowRewrite, "accept rewritten history, if its newest commit is signed by somebody who may change all that differs"},
	}
}

func (w *WebhookConfig) settings() []setting {
	return []setting{
		{"webhook.secretFile", &w.SecretFile, "file with the secret of the forge's webhook; it makes /webhook answer, and a push is seen at once"},
		{"webhook.secretEnv", &w.SecretEnv, "environment variable with the secret of the webhook"},
	}
}

func (l *LimitsConfig) settings() []setting {
	return []setting{
		{"limits.fetchBytes", &l.FetchBytes, "what one poll may receive"},
		{"limits.fetchObjects", &l.FetchObjects, "Git objects that one fetch may bring"},
		{"limits.fetchTime", &l.FetchTime, "how long one poll may take altogether"},
		{"limits.listTime", &l.ListTime, "how long the listing of references may take"},
		{"limits.objectBytes", &l.ObjectBytes, "largest Git object that is rebuilt from a difference"},
		{"limits.packs", &l.Packs, "pack files of the local clone before they are joined"},
		{"limits.files", &l.Files, "files and directories below the path"},
		{"limits.fileSize", &l.FileSize, "size of each file that is read"},
		{"limits.documents", &l.Documents, "YAML documents in one file"},
		{"limits.aliasExpansion", &l.AliasExpansion, "how many times larger a document may become by its YAML aliases"},
		{"limits.depth", &l.Depth, "nesting of a document, and of directories"},
		{"limits.objects", &l.Objects, "objects in one commit"},
		{"limits.commitSize", &l.CommitSize, "how much memory the objects of one commit may take"},
		{"limits.builds", &l.Builds, "kustomizations that are built in one commit"},
		{"limits.buildInput", &l.BuildInput, "how much memory the files may take that one kustomization reads, each as often as it is read"},
		{"limits.buildTime", &l.BuildTime, "how long the build of one kustomization may take"},
		{"limits.buildOutput", &l.BuildOutput, "what the build of one kustomization may write"},
	}
}

func (s *StatusConfig) settings() []setting {
	return []setting{
		{"status.conditions", &s.Conditions, "names of conditions: current, or documented for those of the public documentation beside them"},
	}
}

func (m *MembersConfig) settings() []setting {
	return []setting{
		{"members.kubeconfigDir", &m.KubeconfigDir, "directory with a file NAME.kubeconfig for each member"},
		{"members.kubeconfig", &m.Kubeconfig, "kubeconfig with a context for each member"},
		{"members.secretNamespace", &m.SecretNamespace, "in a cluster: namespace with a Secret NAME-kubeconfig for each member"},
		{"members.allowKubeconfigExec", &m.AllowExec, "allow kubeconfigs that run a program"},
		{"members.allowInsecureKubeconfig", &m.AllowInsecure, "allow kubeconfigs that do not check the server's certificate"},
		{"members.concurrency", &m.Concurrency, "writes in flight to one member"},
		{"members.maxRequests", &m.MaxRequests, "writes in flight to all members together; as many members are connected to at a time"},
		{"members.timeout", &m.Timeout, "longest time for one request to a member"},
		{"members.probeInterval", &m.ProbeInterval, "time between two probes of a member"},
		{"members.sweepInterval", &m.SweepInterval, "time between two readings of all that gitfleet has on a member, which prove that watches tell everything; 0 for none"},
		{"members.deletePercent", &m.DeletePercent, "hold deletions that are more than this share of what gitfleet has on a member, in percent"},
		{"members.deleteObjects", &m.DeleteObjects, "never hold deletions of no more than so many objects"},
	}
}

// settingAnnotation is on a flag that sets a setting, with the key of the setting as its value.
const settingAnnotation = "gitfleet.dev/setting"

// Bind adds --config, --set, and flags for the settings with these keys to the flags of a
// command.
func Bind(f *pflag.FlagSet, config *string, usage string, keys ...string) {
	f.StringVar(config, "config", "", usage)
	defaults := Default()
	settings := defaults.settings()
	for _, own := range settingFlags {
		if !slices.Contains(keys, own.key) {
			continue
		}
		i := slices.IndexFunc(settings, func(s setting) bool { return s.key == own.key })
		settings[i].bind(f, own.flag)
		f.SetAnnotation(own.flag, settingAnnotation, []string{own.key})
	}
	f.StringArray(SetFlag, nil, "set any setting of the configuration file, as `KEY=VALUE`; may be repeated")
}

// values returns flags that set the fields of c, named by their keys.
func (c *Config) values() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, s := range c.settings() {
		s.bind(f, s.key)
	}
	return f
}

// bind adds a flag for a setting.
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
	case pflag.Value:
		f.Var(v, name, s.usage)
	default:
		panic(fmt.Sprintf("setting %s: no flag can be made of a %T", s.key, v))
	}
}

// override applies the flags of a command: --set first, and then the flags of single settings.
func (c *Config) override(flags *pflag.FlagSet) error {
	values := c.values()
	var errs []error
	replaced := map[string]bool{}
	if set := flags.Lookup(SetFlag); set != nil {
		for _, text := range set.Value.(pflag.SliceValue).GetSlice() {
			errs = append(errs, assign(values, text, replaced))
		}
	}
	flags.Visit(func(f *pflag.Flag) {
		for _, key := range f.Annotations[settingAnnotation] {
			errs = append(errs, values.Lookup(key).Value.Set(f.Value.String()))
			delete(c.lines, key)
		}
	})
	for key := range replaced {
		maps.DeleteFunc(c.lines, func(line string, _ int) bool { return line == key || strings.HasPrefix(line, key+".") })
	}
	return errors.Join(errs...)
}

// assign applies KEY=VALUE. The first value of a list replaces the default, and further ones
// are added.
func assign(values *pflag.FlagSet, text string, replaced map[string]bool) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("--set %s: write KEY=VALUE, such as limits.files=100", text)
	}
	v := values.Lookup(key)
	if v == nil {
		return fmt.Errorf("--set %s: there is no setting %s%s", text, key, settingMeant(key))
	}
	list, isList := v.Value.(pflag.SliceValue)
	var err error
	switch {
	case !isList:
		err = setValue(v.Value, value)
	case replaced[key]:
		err = list.Append(value)
	default:
		err = list.Replace([]string{value})
	}
	replaced[key] = true
	if err != nil {
		return fmt.Errorf("--set %s: %w", text, err)
	}
	return nil
}

// positive reports whether a number is greater than zero. Settings that are not numbers, or may
// be zero, count as positive.
func (s setting) positive() bool {
	switch v := s.value.(type) {
	case *int:
		return *v > 0
	case *size:
		return *v > 0
	case *metav1.Duration:
		off := (s.key == "members.sweepInterval" || s.key == "rollout.availableTimeout") && v.Duration == 0
		return off || v.Duration > time.Duration(0)
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

// FlagKeys returns the keys of the settings with a separate flag.
func FlagKeys() []string {
	var keys []string
	for _, own := range settingFlags {
		keys = append(keys, own.key)
	}
	return keys
}

// SecretKeys returns the settings that name a file or a variable with a secret.
func SecretKeys(c *Config) (files, variables []string) {
	for _, s := range c.settings() {
		value, isText := s.value.(*string)
		if !isText || *value == "" {
			continue
		}
		key := strings.ToLower(s.key)
		switch {
		case strings.HasSuffix(key, "env"):
			variables = append(variables, *value)
		case strings.HasSuffix(key, "file") && !strings.HasSuffix(key, "cafile") && !strings.HasSuffix(key, "certfile"):
			files = append(files, *value)
		}
	}
	return files, variables
}

// A File is a file that a setting names.
type File struct{ Key, Path string }

// Files returns the files that the settings name, in the order of the documentation.
func (c *Config) Files() []File {
	var all []File
	for _, s := range c.settings() {
		if file, ok := s.value.(*string); ok && *file != "" && strings.HasSuffix(s.key, "File") {
			all = append(all, File{s.key, *file})
		}
	}
	return all
}
