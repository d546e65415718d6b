// Scripts that dpkg and rpm run on install, upgrade and removal. Plain sh; each may run twice.

import { basename } from 'node:path'
import { configuration, paths } from './system-files.ts'

const unit = 'svc.service'

/** First steps for the user who installed it. */
const banner = `cat <<'END'
svc: checks of this host, with fixes: svc doctor
svc: link to the live page: sudo svc ui
svc: configuration, with the endpoint for your data: ${configuration}
svc: status of the service: systemctl status svc
END
`

/** Creates the user, with useradd if systemd-sysusers is missing. Warns if that name belongs to another user. */
const user = `if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers ${basename(paths.user)}
elif ! getent passwd svc >/dev/null; then
  getent group svc >/dev/null || groupadd --system svc
  useradd --system --gid svc --home-dir /var/lib/svc --no-create-home --shell /usr/sbin/nologin --comment 'svc agent' svc
fi
case $(getent passwd svc) in
svc:*:/var/lib/svc:*/nologin) ;;
*) echo 'svc: warning: the user svc already existed, and the agent runs as that user with its capabilities; to choose another: systemctl edit svc, User=' >&2 ;;
esac
`

/**
 * Applies the settings that the next boot would: from all files of the host, because the administrator's may override.
 */
const sysctl = `for each in /usr/lib/systemd/systemd-sysctl /lib/systemd/systemd-sysctl; do
    if [ -x $each ]; then $each --prefix=/kernel/perf_event_paranoid || true; break; fi
  done
`

/** Removes nothing of an administrator's own user svc, with another home or a shell. A mount point stays, empty. */
const purge = `rm -rf /var/lib/svc /run/svc /etc/svc || true
case $(getent passwd svc) in
svc:*:/var/lib/svc:*/nologin)
  if command -v userdel >/dev/null; then userdel svc || true; fi
  # userdel may leave the group, or it may have other members.
  case $(getent group svc) in *:) if command -v groupdel >/dev/null; then groupdel svc || true; fi ;; esac
  ;;
esac
`

const script = (body: string) => `#!/bin/sh\nset -e\n${body}`

/** Scripts of the .deb, by name (deb-postinst(5) and the like). */
export const debianScripts: Readonly<Record<string, string>> = {
  postinst: script(`case "$1" in
configure)
${user}  ;;
abort-upgrade | abort-deconfigure | abort-remove) ;;
*) exit 0 ;;
esac
# Debian's own way: what an administrator disabled stays disabled.
if deb-systemd-helper --quiet was-enabled ${unit}; then
  deb-systemd-helper enable ${unit} >/dev/null || true
else
  deb-systemd-helper update-state ${unit} >/dev/null || true
fi
if [ -d /run/systemd/system ]; then
  ${sysctl}  systemctl --system daemon-reload >/dev/null || true
  if [ -n "$2" ]; then action=restart; else action=start; fi
  deb-systemd-invoke $action ${unit} >/dev/null || true
fi
if [ "$1" = configure ] && [ -z "$2" ]; then
${banner}fi
`),
  prerm: script(`if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop ${unit} >/dev/null || true
fi
`),
  postrm: script(`if [ -d /run/systemd/system ]; then systemctl --system daemon-reload >/dev/null || true; fi
case "$1" in
purge)
  if command -v deb-systemd-helper >/dev/null; then deb-systemd-helper purge ${unit} >/dev/null || true; fi
${purge}  ;;
esac
`),
}

/** Scripts of the .rpm, by section. rpm has no purge: data and the user stay on removal. */
export const rpmScripts: Readonly<Record<string, string>> = {
  // Not preset: Fedora's and Red Hat's presets leave it off, and the agent would not start at the next boot.
  post: `${user}if [ "$1" = 1 ] && command -v systemctl >/dev/null; then systemctl enable ${unit} >/dev/null 2>&1 || true; fi
if [ -d /run/systemd/system ]; then
  ${sysctl}  systemctl --system daemon-reload >/dev/null || true
  if [ "$1" = 1 ]; then systemctl start ${unit} || true; fi
fi
if [ "$1" = 1 ]; then
${banner}fi
`,
  preun: `if [ "$1" = 0 ] && command -v systemctl >/dev/null; then
  systemctl --no-reload disable --now ${unit} >/dev/null 2>&1 || true
fi
`,
  postun: `if [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
  if [ "$1" -ge 1 ]; then systemctl try-restart ${unit} >/dev/null 2>&1 || true; fi
fi
`,
}
