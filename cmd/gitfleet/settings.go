package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A setting is one field of the configuration.
type setting struct {
	// key is where it stands in the file, flag what it is called on the command
	// line.
	key, flag string
	value     any // a pointer to the field
	usage     string
}

// settings are all there are, in the order in which they are told.
func (c *Config) settings() []setting {
	all := []setting{
		{"fleetName", "fleet-name", &c.FleetName, "name of this fleet: the value of the managed-by label on members; never change it"},
		{"stateDir", "state-dir", &c.StateDir, "directory for the clone, the ledger and the history"},
		{"listen", "listen", &c.Listen, "address to answer on"},
		{"logLevel", "log-level", &c.LogLevel, "debug, info, warn or error"},
	}
	all = append(all, c.Server.settings()...)
	all = append(all, c.Source.settings()...)
	all = append(all, c.Source.Signatures.settings()...)
	all = append(all, c.Webhook.settings()...)
	all = append(all, c.Limits.settings()...)
	all = append(all, c.Members.settings()...)
	all = append(all, c.History.settings()...)
	all = append(all, c.Status.settings()...)
	return append(all, setting{"rollout.maxUnreachable", "max-unreachable", &c.Rollout.MaxUnreachable,
		"how many clusters that do not answer no rollout waits for: a number, or a percentage of those a placement wants"})
}

func (s *SourceConfig) settings() []setting {
	return append([]setting{
		{"source.url", "url", &s.URL, "repository: https://…, ssh://…, user@host:path"},
		{"source.branch", "branch", &s.Branch, "branch to follow; the remote's default branch if no reference is set"},
		{"source.tag", "tag", &s.Tag, "tag to follow"},
		{"source.semver", "semver", &s.SemVer, "range of tags to follow, such as \">=1.2 <2\": the highest in it"},
		{"source.commit", "commit", &s.Commit, "commit to stay at, by its whole hash"},
		{"source.path", "path", &s.Path, "directory of the repository that is the hub"},
		{"source.interval", "interval", &s.Interval, "time between two polls"},
	}, s.credentials()...)
}

// credentials are the settings about reaching a repository.
func (s *SourceConfig) credentials() []setting {
	return []setting{
		{"source.tokenFile", "token-file", &s.TokenFile, "file with an access token for the repository"},
		{"source.tokenEnv", "token-env", &s.TokenEnv, "environment variable with an access token"},
		{"source.bearerFile", "bearer-file", &s.BearerFile, "file with a token to send as Authorization: Bearer"},
		{"source.bearerEnv", "bearer-env", &s.BearerEnv, "environment variable with such a token"},
		{"source.username", "username", &s.Username, "user name that goes with the token or password"},
		{"source.passwordFile", "password-file", &s.PasswordFile, "file with a password for the repository"},
		{"source.passwordEnv", "password-env", &s.PasswordEnv, "environment variable with a password"},
		{"source.sshKeyFile", "ssh-key-file", &s.SSHKeyFile, "file with a private key for ssh://"},
		{"source.sshKeyEnv", "ssh-key-env", &s.SSHKeyEnv, "environment variable with a private key"},
		{"source.sshPassphraseFile", "ssh-passphrase-file", &s.SSHPassphraseFile, "file with the passphrase of the private key"},
		{"source.sshPassphraseEnv", "ssh-passphrase-env", &s.SSHPassphraseEnv, "environment variable with the passphrase"},
		{"source.sshKnownHosts", "ssh-known-hosts", &s.SSHKnownHosts, "known_hosts file with the key of the Git server; required for ssh://"},
		{"source.caBundle", "ca-bundle", &s.CABundle, "PEM file of certificates to trust for https://, beside the system's"},
		{"source.githubAppID", "github-app-id", &s.GitHubAppID, "ID of a GitHub App to authenticate as"},
		{"source.githubAppInstallation", "github-app-installation", &s.GitHubAppInstallation, "ID of the App's installation"},
		{"source.githubAppKeyFile", "github-app-key-file", &s.GitHubAppKeyFile, "file with the App's private key"},
		{"source.githubAppKeyEnv", "github-app-key-env", &s.GitHubAppKeyEnv, "environment variable with the App's private key"},
		{"source.githubAppAPIURL", "github-app-api-url", &s.GitHubAppAPIURL, "API of GitHub Enterprise Server, https://HOST/api/v3"},
		{"source.allowHTTP", "allow-http", &s.AllowHTTP, "allow http:// for the repository, where anybody on the way can change what the fleet runs"},
		{"source.allowFile", "allow-file", &s.AllowFile, "allow file:// and paths for the repository"},
	}
}

func (s *SignaturesConfig) settings() []setting {
	return []setting{
		{"source.signatures.openPGP", "signatures-openpgp", &s.OpenPGP, "file of OpenPGP public keys whose signatures count; may be repeated"},
		{"source.signatures.allowedSigners", "signatures-allowed-signers", &s.AllowedSigners, "file of SSH keys whose signatures count, in the format of ssh-keygen"},
		{"source.signatures.paths", "signatures-path", &s.Paths, "who may change files below a path, as PATH=SIGNER,SIGNER; may be repeated; every signer may change everything if there is none"},
		{"source.signatures.since", "signatures-since", &s.Since, "commit after which everything must be signed"},
		{"source.signatures.allowRewrite", "signatures-allow-rewrite", &s.AllowRewrite, "accept rewritten history, if its newest commit is signed by somebody who may change all that differs"},
	}
}

func (w *WebhookConfig) settings() []setting {
	return []setting{
		{"webhook.secretFile", "webhook-secret-file", &w.SecretFile, "file with the secret of the forge's webhook; it makes /webhook answer, and a push is seen at once"},
		{"webhook.secretEnv", "webhook-secret-env", &w.SecretEnv, "environment variable with the secret of the webhook"},
	}
}

func (l *LimitsConfig) settings() []setting {
	return []setting{
		{"limits.fetchBytes", "limit-fetch-bytes", &l.FetchBytes, "what one poll may receive"},
		{"limits.fetchObjects", "limit-fetch-objects", &l.FetchObjects, "Git objects that one fetch may bring"},
		{"limits.fetchTime", "limit-fetch-time", &l.FetchTime, "how long one poll may take altogether"},
		{"limits.listTime", "limit-list-time", &l.ListTime, "how long the listing of references may take"},
		{"limits.objectBytes", "limit-object-bytes", &l.ObjectBytes, "largest Git object that is rebuilt from a difference"},
		{"limits.packs", "limit-packs", &l.Packs, "pack files of the local clone before they are joined"},
		{"limits.files", "limit-files", &l.Files, "files below the path"},
		{"limits.fileSize", "limit-file-size", &l.FileSize, "size of each file that is read"},
		{"limits.documents", "limit-documents", &l.Documents, "YAML documents in one file"},
		{"limits.aliasExpansion", "limit-alias-expansion", &l.AliasExpansion, "how many times larger a document may become by its YAML aliases"},
		{"limits.depth", "limit-depth", &l.Depth, "nesting of a document, and of directories"},
		{"limits.objects", "limit-objects", &l.Objects, "objects in one commit"},
		{"limits.buildTime", "limit-build-time", &l.BuildTime, "how long the build of one kustomization may take"},
		{"limits.buildOutput", "limit-build-output", &l.BuildOutput, "what the build of one kustomization may write"},
	}
}

func (s *StatusConfig) settings() []setting {
	return []setting{
		{"status.conditions", "status-conditions", &s.Conditions, "names of conditions: current, or documented for those of the public documentation beside them"},
	}
}

func (m *MembersConfig) settings() []setting {
	return []setting{
		{"members.kubeconfigDir", "kubeconfig-dir", &m.KubeconfigDir, "directory with a file NAME.kubeconfig for each member"},
		{"members.kubeconfig", "kubeconfig", &m.Kubeconfig, "kubeconfig with a context for each member"},
		{"members.secretNamespace", "secret-namespace", &m.SecretNamespace, "in a cluster: namespace with a Secret NAME-kubeconfig for each member"},
		{"members.allowKubeconfigExec", "allow-kubeconfig-exec", &m.AllowExec, "allow kubeconfigs that run a program"},
		{"members.allowInsecureKubeconfig", "allow-insecure-kubeconfig", &m.AllowInsecure, "allow kubeconfigs that do not check the server's certificate"},
		{"members.concurrency", "member-concurrency", &m.Concurrency, "writes in flight to one member"},
		{"members.maxRequests", "max-requests", &m.MaxRequests, "writes in flight to all members together; as many members are connected to at a time"},
		{"members.timeout", "member-timeout", &m.Timeout, "longest time for one request to a member"},
		{"members.probeInterval", "probe-interval", &m.ProbeInterval, "time between two probes of a member"},
		{"members.sweepInterval", "sweep-interval", &m.SweepInterval, "time between two readings of all that gitfleet has on a member, which prove that watches tell everything; 0 for none"},
		{"members.deletePercent", "delete-percent", &m.DeletePercent, "hold deletions that are more than this share of what gitfleet has on a member, in percent"},
		{"members.deleteObjects", "delete-objects", &m.DeleteObjects, "never hold deletions of no more than so many objects"},
	}
}

// bind makes a flag of every setting.
func (c *Config) bind(f *pflag.FlagSet) { bind(f, c.settings()) }

func bind(f *pflag.FlagSet, settings []setting) {
	for _, s := range settings {
		switch v := s.value.(type) {
		case *string:
			f.StringVar(v, s.flag, *v, s.usage)
		case *bool:
			f.BoolVar(v, s.flag, *v, s.usage)
		case *int:
			f.IntVar(v, s.flag, *v, s.usage)
		case *int64:
			f.Int64Var(v, s.flag, *v, s.usage)
		case *metav1.Duration:
			f.DurationVar(&v.Duration, s.flag, v.Duration, s.usage)
		case *[]string:
			f.StringArrayVar(v, s.flag, *v, s.usage)
		case pflag.Value:
			f.Var(v, s.flag, s.usage)
		default:
			panic(fmt.Sprintf("setting %s: no flag can be made of a %T", s.key, v))
		}
	}
}

// override takes over the flags that were set.
func (c *Config) override(flags *pflag.FlagSet) error {
	mine := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.bind(mine)
	var errs []error
	flags.Visit(func(f *pflag.Flag) {
		m := mine.Lookup(f.Name)
		if m == nil {
			return // not a setting
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			errs = append(errs, m.Value.(pflag.SliceValue).Replace(list.GetSlice()))
			return
		}
		errs = append(errs, m.Value.Set(f.Value.String()))
	})
	return errors.Join(errs...)
}

// positive reports whether a number is more than zero; what is no number is, and
// what may be switched off.
func (s setting) positive() bool {
	switch v := s.value.(type) {
	case *int:
		return *v > 0
	case *size:
		return *v > 0
	case *metav1.Duration:
		off := s.key == "members.sweepInterval" && v.Duration == 0
		return off || v.Duration > time.Duration(0)
	}
	return true
}
