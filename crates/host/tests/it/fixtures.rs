//! Six made-up machines.

use super::made::{KERNEL, Made, thread};

const CONFIG: &str = "CONFIG_HZ=250\\nCONFIG_HIGH_RES_TIMERS=y\\nCONFIG_NO_HZ_FULL=y\\nCONFIG_RCU_NOCB_CPU=y\\nCONFIG_CPU_ISOLATION=y\\nCONFIG_A=y\\nCONFIG_B=y\\nCONFIG_C=y\\nCONFIG_D=y\\nCONFIG_COMPACTION=y\\nCONFIG_NUMA_BALANCING=y";

/// Files of the workstation that are the same for all its cores.
const BARE_METAL: &str = "
proc/version Linux version 6.12.1-amd64 (x@y) (gcc 14) #1 SMP PREEMPT_DYNAMIC Debian
proc/sys/kernel/osrelease 6.12.1-amd64
proc/cmdline BOOT_IMAGE=/boot/vmlinuz root=/dev/nvme0n1p2 ro quiet
proc/sys/kernel/random/boot_id 11111111-2222
proc/cpuinfo processor\\t: 0\\nflags\\t\\t: fpu tsc constant_tsc nonstop_tsc
sys/devices/system/cpu/{online,possible} 0-15
sys/devices/system/cpu/{isolated,nohz_full}
sys/devices/system/cpu/smt/active 1
sys/devices/system/cpu/smt/control on
sys/devices/system/cpu/vulnerabilities/meltdown Not affected
sys/devices/system/cpu/vulnerabilities/spectre_v2 Mitigation: Retpolines
sys/devices/system/cpu/cpu{0-15}/cpufreq/scaling_governor powersave
sys/devices/system/cpu/cpu{0-15}/cpufreq/energy_performance_preference balance_performance
sys/devices/system/cpu/cpu{0-15}/power/pm_qos_resume_latency_us 0
sys/devices/system/cpu/cpu0/cpuidle/state0/name POLL
sys/devices/system/cpu/cpu0/cpuidle/state0/latency 0
sys/devices/system/cpu/cpu0/cpuidle/state0/disable 0
sys/devices/system/cpu/cpu0/cpuidle/state3/name C6
sys/devices/system/cpu/cpu0/cpuidle/state3/latency 133
sys/devices/system/cpu/cpu0/cpuidle/state3/disable 0
sys/devices/system/cpu/cpu0/cache/index3/level 3
sys/devices/system/node/node0/cpulist 0-3,8-11
sys/devices/system/node/node1/cpulist 4-7,12-15
sys/devices/system/clocksource/clocksource0/current_clocksource tsc
sys/kernel/security/lockdown [none] integrity confidentiality
sys/kernel/debug/sched/preempt none (voluntary) full lazy
sys/kernel/debug/sched/base_slice_ns 3000000
sys/kernel/debug/sched/fair_server/cpu{0-15}/runtime 50000000
sys/kernel/debug/sched/fair_server/cpu{0-15}/period 1000000000
sys/kernel/sched_ext/state disabled
proc/sys/kernel/sched_rt_runtime_us 950000
proc/sys/kernel/sched_rt_period_us 1000000
proc/sys/kernel/{sched_autogroup_enabled,timer_migration,numa_balancing,nmi_watchdog,soft_watchdog} 1
proc/sys/kernel/watchdog_cpumask 0-15
proc/sys/kernel/printk 7\\t4\\t1\\t7
proc/sys/kernel/perf_event_paranoid 3
proc/sys/vm/{stat_interval,compact_unevictable_allowed} 1
proc/sys/vm/compaction_proactiveness 20
proc/sys/vm/swappiness 60
proc/swaps Filename Type Size Used Priority\\n/dev/nvme0n1p3 partition 8388604 0 -2
sys/kernel/mm/transparent_hugepage/enabled [always] madvise never
sys/kernel/mm/transparent_hugepage/defrag always defer defer+madvise [madvise] never
sys/kernel/mm/ksm/run 1
proc/irq/default_smp_affinity ffff
proc/irq/{24,25}/smp_affinity_list 0-15
proc/irq/24/effective_affinity_list 2
proc/irq/25/effective_affinity_list 9
proc/interrupts            CPU0       CPU1\\n 24:  10  20  PCI-MSI 1-edge  nvme0q1\\n 25:  1  2  PCI-MSI 2-edge  eth0
proc/stat cpu  1 2 3 4 5 6 7 0 0 0
sys/devices/virtual/workqueue/cpumask ffff
sys/bus/workqueue/devices/writeback/cpumask ffff
sys/class/net/eth0/queues/rx-0/rps_cpus 0004
sys/devices/system/machinecheck/machinecheck0/check_interval 300
sys/kernel/tracing/current_tracer nop
sys/kernel/tracing/set_event
sys/fs/cgroup/cgroup.controllers cpuset cpu io memory pids
sys/fs/cgroup/user.slice/cpuset.cpus.effective 0-15
proc/self/cgroup 0::/user.slice
proc/1/cgroup 0::/init.scope
proc/self/status Name:\\tonbeat\\nSeccomp:\\t0
proc/pressure/cpu some avg10=0.12 avg60=0.1 avg300=0.1 total=5
etc/default/grub GRUB_DEFAULT=0\\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\"\\nGRUB_CMDLINE_LINUX=\"\"
";

/// A workstation: one socket per node, two hardware threads per core, Debian's kernel, nothing tuned.
pub fn bare_metal() -> Made {
    let mut made = Made::of(BARE_METAL);
    made.and(&format!("boot/config-6.12.1-amd64 {CONFIG}"));
    for core in 0..16 {
        let (a, b) = (core % 8, core % 8 + 8);
        made.and(&format!(
            "sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list {a},{b}\n\
             sys/devices/system/cpu/cpu{core}/cache/index3/shared_cpu_list {}",
            if core % 8 < 4 { "0-3,8-11" } else { "4-7,12-15" }
        ));
    }
    made.and(&thread(10, "ksoftirqd/0", KERNEL, 0, 0, "0"));
    made.and(&thread(11, "migration/2", KERNEL, 1, 99, "2"));
    made.and(&thread(900, "irqbalance", 0, 0, 0, "0-15"));
    made.and(&thread(901, "rtkit-daemon", 0, 0, 0, "0-15"));
    made.and(&thread(950, "jackd", 0, 1, 70, "0-15"));
    made
}

/// The same machine with the real-time kernel, after `tune`.
pub fn tuned() -> Made {
    let mut made = bare_metal();
    made.without("sys/kernel/debug/sched/preempt").without("proc/900/").without("proc/950/");
    made.and(
        "
sys/kernel/realtime 1
proc/version Linux version 6.12.1-rt-amd64 (x@y) (gcc 14) #1 SMP PREEMPT_RT Debian
proc/cmdline root=/dev/nvme0n1p2 isolcpus=managed_irq,domain,2-3,10-11 nohz_full=2-3,10-11 rcu_nocbs=2-3,10-11 irqaffinity=0-1,4-9,12-15 mce=ignore_ce
sys/devices/system/cpu/{isolated,nohz_full} 2-3,10-11
sys/devices/system/cpu/cpu{0-15}/cpufreq/scaling_governor performance
sys/devices/system/cpu/cpu{0-15}/cpufreq/energy_performance_preference performance
sys/devices/system/cpu/cpu{2-3}/power/pm_qos_resume_latency_us n/a
sys/kernel/debug/sched/fair_server/cpu{2-3}/runtime 0
proc/sys/kernel/sched_rt_runtime_us -1
proc/sys/kernel/{sched_autogroup_enabled,timer_migration,numa_balancing,nmi_watchdog} 0
proc/sys/kernel/watchdog_cpumask 0-1,4-9,12-15
proc/sys/kernel/printk 4\\t4\\t1\\t7
proc/sys/vm/stat_interval 10
proc/sys/vm/{compact_unevictable_allowed,compaction_proactiveness} 0
proc/swaps Filename Type Size Used Priority
sys/kernel/mm/transparent_hugepage/enabled always [madvise] never
sys/kernel/mm/transparent_hugepage/defrag always [defer] defer+madvise madvise never
sys/kernel/mm/ksm/run 0
proc/irq/default_smp_affinity f3f3
proc/irq/{24,25}/smp_affinity_list 0-1
proc/irq/{24,25}/effective_affinity_list 0
sys/devices/virtual/workqueue/cpumask f3f3
sys/bus/workqueue/devices/writeback/cpumask f3f3
sys/class/net/eth0/queues/rx-0/rps_cpus 0000
sys/fs/cgroup/user.slice/cpuset.cpus.effective 0-15
",
    );
    for core in [2, 3, 10, 11] {
        made.and(&thread(100 + core, &format!("rcuop/{core}"), KERNEL, 0, 0, "0-1"));
    }
    made
}

/// A board with six ARM cores, as its vendor ships it.
pub fn jetson() -> Made {
    let mut made = Made::of(
        "
proc/version Linux version 5.15.148-tegra (x@y) (gcc 11) #1 SMP PREEMPT Mon
proc/sys/kernel/osrelease 5.15.148-tegra
proc/cmdline root=/dev/mmcblk0p1 rw rootwait console=ttyTCU0,115200 isolcpu=4-5
proc/cpuinfo processor\\t: 0\\nFeatures\\t: fp asimd
sys/devices/system/cpu/{online,possible} 0-5
sys/devices/system/cpu/isolated
sys/devices/system/cpu/cpu{0-5}/cpufreq/scaling_governor schedutil
sys/devices/system/cpu/cpu0/cpuidle/state0/name WFI
sys/devices/system/cpu/cpu0/cpuidle/state0/latency 1
sys/devices/system/cpu/cpu0/cpuidle/state1/name c7
sys/devices/system/cpu/cpu0/cpuidle/state1/latency 5000
sys/devices/system/clocksource/clocksource0/current_clocksource arch_sys_counter
proc/sys/kernel/sched_rt_runtime_us 950000
proc/sys/kernel/sched_rt_period_us 1000000
proc/sys/kernel/timer_migration 1
proc/sys/kernel/printk 7 4 1 7
proc/sys/vm/stat_interval 1
proc/swaps Filename Type Size Used Priority\\n/dev/zram0 partition 1 0 5
proc/irq/default_smp_affinity 3f
proc/irq/30/smp_affinity_list 0-5
proc/interrupts   CPU0\\n 30:  1  GICv3 65 Level  3160000.i2c
proc/self/cgroup 0::/
proc/1/cgroup 0::/init.scope
sys/class/net/eth0/queues/rx-0/rps_cpus 00
boot/extlinux/extlinux.conf TIMEOUT 30\\nDEFAULT primary\\nLABEL backup\\n      APPEND root=/dev/old\\nLABEL primary\\n      LINUX /boot/Image\\n      APPEND ${cbootargs} root=/dev/mmcblk0p1 rw isolcpu=4-5
",
    );
    made.and(&thread(10, "ksoftirqd/0", KERNEL, 0, 0, "0"));
    made.and(&thread(50, "irq/30-i2c", KERNEL, 1, 50, "0-5"));
    made
}

/// A container on a cloud machine.
pub fn container() -> Made {
    let mut made = cloud();
    made.without("sys/kernel/debug/").without("sys/kernel/tracing/").without("boot/");
    made.and(
        "
.dockerenv
proc/self/cgroup 0::/
proc/1/cgroup 0::/
proc/self/status Name:\\tonbeat\\nSeccomp:\\t2
sys/fs/cgroup/cpu.max 150000 100000
sys/fs/cgroup/cpuset.cpus.effective 0-1
",
    );
    made
}

/// A cloud machine with its default settings.
pub fn cloud() -> Made {
    let mut made = bare_metal();
    made.without("sys/devices/system/cpu/cpu")
        .without("sys/devices/system/node")
        .without("sys/devices/system/machinecheck");
    made.without("proc/950/").without("proc/900/").without("proc/901/").without("etc/default");
    made.and(
        "
proc/cpuinfo processor\\t: 0\\nflags\\t\\t: fpu tsc hypervisor constant_tsc
sys/class/dmi/id/product_name KVM Virtual Machine
sys/devices/system/cpu/{online,possible} 0-3
sys/devices/system/cpu/cpu0/topology/thread_siblings_list 0
sys/devices/system/cpu/smt/active 0
sys/devices/system/clocksource/clocksource0/current_clocksource kvm-clock
sys/module/haltpoll/parameters/guest_halt_poll_ns 200000
proc/stat cpu  100 0 100 10000 0 0 0 100 0 0
proc/interrupts   CPU0 CPU1\\n 26:  1  0  PCI-MSI 1-edge  virtio0-inflate\\n 27:  1 9  PCI-MSI 1-edge virtio1-req.0
proc/irq/27/smp_affinity_list 1
proc/irq/27/effective_affinity_list 1
proc/cmdline root=/dev/vda1 console=ttyS0,115200 tsc=reliable
etc/kernel/cmdline root=/dev/vda1 console=ttyS0,115200
",
    );
    made
}

/// A small virtual machine with two cores and an unusual kernel.
pub fn small() -> Made {
    let mut made = cloud();
    made.without("sys/kernel/debug/")
        .without("boot/")
        .without("sys/kernel/security")
        .without("sys/fs/cgroup")
        .without("proc/irq/");
    made.and(
        "
proc/version Linux version 6.18.44-vm (x@y) #1 SMP PREEMPT_DYNAMIC @0
proc/sys/kernel/osrelease 6.18.44-vm
proc/cmdline console=ttyS0 quiet haltpoll.guest_halt_poll_ns=0 -- --first-program
proc/interrupts   CPU0 CPU1\\n 32:  5292  0  PCI-MSIX 4-edge  virtio0-reporting_vq\\n 36:  0 65  PCI-MSIX 1-edge virtio1-req.0
proc/irq/default_smp_affinity 3
proc/irq/{32,36}/smp_affinity_list 0-1
proc/irq/32/effective_affinity_list 0
proc/irq/36/effective_affinity_list 1
sys/devices/system/cpu/{online,possible} 0-1
sys/module/haltpoll/parameters/guest_halt_poll_ns 0
sys/devices/system/clocksource/clocksource0/current_clocksource tsc
sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds 1
sys/kernel/mm/damon/admin/kdamonds/0/state on
sys/devices/virtual/workqueue/cpumask 3
sys/bus/workqueue/devices/writeback/cpumask 3
proc/sys/kernel/watchdog_cpumask 0-1
proc/self/cgroup 3:cpuset:/\\n1:cpu:/\\n0::/
sys/fs/cgroup/cpu/cpu.rt_runtime_us 950000
sys/fs/cgroup/cpu/cpu.cfs_quota_us -1
sys/fs/cgroup/cpu/cpu.cfs_period_us 100000
sys/fs/cgroup/cpuset/cpuset.effective_cpus 0-1
",
    );
    made.without("sys/devices/system/cpu/nohz_full");
    let config =
        CONFIG.replace("CONFIG_NO_HZ_FULL=y\\n", "CONFIG_RT_GROUP_SCHED=y\\nCONFIG_PREEMPT_NONE=y\\n");
    made.and(&format!("boot/config-6.18.44-vm {config}"));
    made.and(&thread(77, "kdamond.0", KERNEL, 0, 0, "0-1"));
    made.and(&thread(10, "ksoftirqd/0", KERNEL, 0, 0, "0"));
    made
}
