import { loadNative, Unsupported } from '../../kernel/native.ts'
import { GpuSource } from '../../signals/metrics/gpu/gpu-source.ts'
import { check } from './check.ts'

const lookMs = 20

export const gpus = check({
  name: 'NVIDIA GPUs',
  group: 'gpu',
  summary: 'The NVIDIA driver library (NVML) works; not needed on a host without GPUs',
  impact: 'all GPU metrics',
  faults: {
    absent: {
      state: 'note',
      what: 'this host has no NVIDIA driver, or a driver but no GPU',
      hints: { any: 'none needed: no GPUs' },
    },
    silent: {
      state: 'limited',
      what: 'the driver library is installed, but the driver does not answer',
      hints: {
        any: 'run nvidia-smi for details; after a driver update, reboot the host',
        container: 'docker run --gpus=all, with NVIDIA_DRIVER_CAPABILITIES=utility',
        config: 'agent.gpu.enabled: false',
      },
    },
    lost: {
      state: 'limited',
      what: 'some GPUs are measured, but one does not answer its driver',
      impact: 'metrics of that GPU',
      hints: {
        any: 'check dmesg for the cause (lines with NVRM and Xid); such a GPU needs a reset or a reboot of the host',
      },
    },
  },
  try: async ({ loaded, timeoutMs }) => {
    const { mode, agent } = loaded.config
    if (mode !== 'agent' || !agent.gpu.enabled || !agent.gpu.nvidia) return []
    const native = loadNative()
    if (native instanceof Unsupported) return []
    const source = new GpuSource({
      native,
      intervalMs: agent.gpu.interval,
      perProcess: false,
      emitHost: () => undefined,
      emitProcess: () => undefined,
      warn: () => undefined,
    })
    source.start()
    try {
      const until = performance.now() + timeoutMs
      while (!source.state.on && source.state.reason === '' && performance.now() < until)
        await new Promise(resolve => setTimeout(resolve, lookMs))
      const { on, reason, hint, driver, devices } = source.state
      if (reason === '' && !on)
        return [{ fault: 'silent', detail: `it has not answered for ${timeoutMs / 1000} s` }]
      if (!on) return [{ fault: hint === '' ? 'absent' : 'silent', detail: reason }]
      const measured = devices.filter(device => device.reason === '').map(({ name }) => name)
      const found = { ok: `driver ${driver}: ${measured.join(', ')}` }
      return reason === '' ? [found] : [found, { fault: 'lost', detail: reason }]
    } finally {
      source.stop()
    }
  },
})
