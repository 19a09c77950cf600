//! Exact losses and flipped bits: a small program in the kernel that sees each packet arrive.
//!
//! It counts packets with TCP payload from 1, drops those whose number is on a list, and flips a
//! random bit in the payload of a share of the others, leaving the checksum as it was. Counter,
//! share and list lie in maps, so that they can change while it runs. It is assembled here, a few
//! dozen instructions, because netem counts no packets and flips bits anywhere in a frame.
//!
//! Left out: IPv4 options and IPv6 extension headers, which our own hosts do not send.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use super::queues::chance;
use super::system;
use crate::lab::layout::Fate;

/// A loaded program and its maps.
#[derive(Debug)]
pub(super) struct Judge {
    /// To be attached to a device.
    pub(super) program: OwnedFd,
    state: OwnedFd,
    lost: OwnedFd,
    listed: Vec<u64>,
}

impl Judge {
    /// Loads the program for one IP version.
    pub(super) fn new(ipv6: bool, fate: &Fate) -> io::Result<Self> {
        system::lock_without_limit()?;
        let state = map(BPF_MAP_TYPE_ARRAY, 4, STATE, 1)?;
        let lost = map(BPF_MAP_TYPE_HASH, 8, 1, MOST_LOST)?;
        let program = load(&code(ipv6, state.as_raw_fd(), lost.as_raw_fd()))?;
        let mut judge = Self { program, state, lost, listed: Vec::new() };
        judge.change(fate)?;
        Ok(judge)
    }

    /// Judges by other rules from now on; the count goes on.
    pub(super) fn change(&mut self, fate: &Fate) -> io::Result<()> {
        for number in std::mem::take(&mut self.listed) {
            entry(BPF_MAP_DELETE_ELEM, &self.lost, &number.to_ne_bytes(), &mut [])?;
        }
        for number in &fate.lost {
            entry(BPF_MAP_UPDATE_ELEM, &self.lost, &number.to_ne_bytes(), &mut [1])?;
        }
        self.listed.clone_from(&fate.lost);
        self.listed.sort_unstable();
        self.listed.dedup();
        let mut state = [0; STATE as usize];
        entry(BPF_MAP_LOOKUP_ELEM, &self.state, &[0; 4], &mut state)?;
        state[8..].copy_from_slice(&u64::from(chance(fate.corrupt)).to_ne_bytes());
        entry(BPF_MAP_UPDATE_ELEM, &self.state, &[0; 4], &mut state)
    }
}

/// The program. r6 is the packet, r7 the length of its payload, r8 where that begins, r9 the state.
fn code(ipv6: bool, state: i32, lost: i32) -> Vec<u64> {
    let (ether_type, protocol_at, length_at, header): (u16, i32, i32, i32) =
        if ipv6 { (0x86dd, 20, 18, 40) } else { (0x0800, 23, 16, 20) };
    let tcp = ETHERNET + header;
    let mut c = Code::default();
    c.op(MOV_REG, R6, R1, 0, 0);
    c.load(12, 2).read(B2, R1).or_pass(JNE_IMM, R1, i32::from(ether_type.to_be()));
    c.load(protocol_at, 1).read(B1, R1).or_pass(JNE_IMM, R1, libc::IPPROTO_TCP);
    c.load(length_at, 2).read(B2, R7).op(TO_BIG_ENDIAN, R7, 0, 0, 16);
    c.load(tcp + 12, 1).read(B1, R8).op(RSH_IMM, R8, 0, 0, 4).op(LSH_IMM, R8, 0, 0, 2);
    c.op(SUB_REG, R7, R8, 0, 0).op(ADD_IMM, R8, 0, 0, tcp);
    if !ipv6 {
        // The length of IPv4 counts its own header.
        c.op(SUB_IMM, R7, 0, 0, header);
    }
    c.or_pass(JSLE_IMM, R7, 0);
    // One more packet with data.
    c.op(STORE_IMM_4, R10, 0, SCRATCH, 0).look_up(state, SCRATCH).or_pass(JEQ_IMM, R0, 0);
    c.op(MOV_REG, R9, R0, 0, 0).op(B8, R1, R9, 0, 0).op(ADD_IMM, R1, 0, 0, 1);
    c.op(STORE_8, R9, R1, 0, 0).op(STORE_8, R10, R1, SCRATCH, 0);
    c.look_up(lost, SCRATCH).op(JEQ_IMM, R0, 0, 2, 0);
    c.op(MOV_IMM, R0, 0, 0, TC_ACT_SHOT).op(EXIT, 0, 0, 0, 0);
    // A bit of it may flip.
    c.op(B8, R9, R9, 8, 0).or_pass(JEQ_IMM, R9, 0);
    c.call(GET_PRANDOM_U32).or_pass_reg(JGE_REG, R0, R9).call(GET_PRANDOM_U32);
    c.op(MOV_REG, R9, R0, 0, 0).op(RSH_IMM, R9, 0, 0, 16).op(AND_IMM, R9, 0, 0, 7);
    c.op(MOD_REG, R0, R7, 0, 0).op(ADD_REG, R8, R0, 0, 0);
    c.op(MOV_REG, R2, R8, 0, 0).load_there(1).read(B1, R2);
    c.op(MOV_IMM, R1, 0, 0, 1).op(LSH_REG, R1, R9, 0, 0).op(XOR_REG, R2, R1, 0, 0);
    c.op(STORE_1, R10, R2, SCRATCH, 0);
    c.op(MOV_REG, R1, R6, 0, 0).op(MOV_REG, R2, R8, 0, 0).scratch(R3);
    c.op(MOV_IMM, R4, 0, 0, 1).op(MOV_IMM, R5, 0, 0, 0).call(SKB_STORE_BYTES);
    c.finished()
}

/// Instructions, and those among them that jump to the end when a packet is none of our business.
#[derive(Default)]
struct Code {
    instructions: Vec<u64>,
    passes: Vec<usize>,
}

impl Code {
    fn op(&mut self, code: u8, to: u8, from: u8, offset: i16, value: i32) -> &mut Self {
        let mut bytes = [code, from << 4 | to, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
        bytes[4..].copy_from_slice(&value.to_ne_bytes());
        self.instructions.push(u64::from_ne_bytes(bytes));
        self
    }

    fn call(&mut self, function: i32) -> &mut Self {
        self.op(CALL, 0, 0, 0, function)
    }

    fn or_pass(&mut self, jump: u8, register: u8, value: i32) -> &mut Self {
        self.passes.push(self.instructions.len());
        self.op(jump, register, 0, 0, value)
    }

    fn or_pass_reg(&mut self, jump: u8, register: u8, other: u8) -> &mut Self {
        self.passes.push(self.instructions.len());
        self.op(jump, register, other, 0, 0)
    }

    /// Points a register at the scratch place.
    fn scratch(&mut self, register: u8) -> &mut Self {
        self.op(MOV_REG, register, R10, 0, 0).op(ADD_IMM, register, 0, 0, SCRATCH.into())
    }

    /// Loads bytes of the packet to the scratch place.
    fn load(&mut self, at: i32, bytes: i32) -> &mut Self {
        self.op(MOV_IMM, R2, 0, 0, at).load_there(bytes)
    }

    /// The same, from where r2 says.
    fn load_there(&mut self, bytes: i32) -> &mut Self {
        self.op(MOV_REG, R1, R6, 0, 0).scratch(R3).op(MOV_IMM, R4, 0, 0, bytes);
        self.call(SKB_LOAD_BYTES).or_pass(JNE_IMM, R0, 0)
    }

    /// Reads the scratch place.
    fn read(&mut self, size: u8, register: u8) -> &mut Self {
        self.op(size, register, R10, SCRATCH, 0)
    }

    /// Looks a key up that lies on the stack.
    fn look_up(&mut self, map: i32, key: i16) -> &mut Self {
        self.op(LOAD_MAP, R1, PSEUDO_MAP_FD, 0, map).op(0, 0, 0, 0, 0);
        self.op(MOV_REG, R2, R10, 0, 0).op(ADD_IMM, R2, 0, 0, key.into()).call(MAP_LOOKUP_ELEM)
    }

    fn finished(mut self) -> Vec<u64> {
        let end = self.instructions.len();
        self.op(MOV_IMM, R0, 0, 0, TC_ACT_OK).op(EXIT, 0, 0, 0, 0);
        for at in self.passes {
            let offset = (end - at - 1) as i16;
            let mut bytes = self.instructions[at].to_ne_bytes();
            bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
            self.instructions[at] = u64::from_ne_bytes(bytes);
        }
        self.instructions
    }
}

fn map(kind: u32, key: u32, value: u32, entries: u32) -> io::Result<OwnedFd> {
    system::bpf_new(BPF_MAP_CREATE, &[kind, key, value, entries, 0].map(u32::to_ne_bytes).concat())
}

/// Reads, writes or removes an entry of a map.
fn entry(command: u32, map: &OwnedFd, key: &[u8], value: &mut [u8]) -> io::Result<()> {
    let mut attributes = (map.as_raw_fd() as u64).to_ne_bytes().to_vec();
    attributes.extend((key.as_ptr().expose_provenance() as u64).to_ne_bytes());
    attributes.extend((value.as_mut_ptr().expose_provenance() as u64).to_ne_bytes());
    attributes.extend(0_u64.to_ne_bytes());
    system::bpf(command, &attributes).map(drop)
}

fn load(code: &[u64]) -> io::Result<OwnedFd> {
    let licence = c"Apache-2.0";
    let mut attributes = Vec::new();
    attributes.extend(BPF_PROG_TYPE_SCHED_CLS.to_ne_bytes());
    attributes.extend((code.len() as u32).to_ne_bytes());
    attributes.extend((code.as_ptr().expose_provenance() as u64).to_ne_bytes());
    attributes.extend((licence.as_ptr().expose_provenance() as u64).to_ne_bytes());
    attributes.extend([0; 24]);
    system::bpf_new(BPF_PROG_LOAD, &attributes)
}

/// Bytes of the state: how many packets with data came, and the chance of a flipped bit.
const STATE: u32 = 16;

/// Entries of the list of losses. Ours: more than a scenario lists.
pub(crate) const MOST_LOST: u32 = 65_536;

/// Where on the stack the program keeps what it loads.
const SCRATCH: i16 = -8;

const ETHERNET: i32 = 14;

// linux/bpf.h and linux/bpf_common.h
const BPF_MAP_CREATE: u32 = 0;
const BPF_MAP_LOOKUP_ELEM: u32 = 1;
const BPF_MAP_UPDATE_ELEM: u32 = 2;
const BPF_MAP_DELETE_ELEM: u32 = 3;
const BPF_PROG_LOAD: u32 = 5;
const BPF_MAP_TYPE_HASH: u32 = 1;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const PSEUDO_MAP_FD: u8 = 1;
const MAP_LOOKUP_ELEM: i32 = 1;
const GET_PRANDOM_U32: i32 = 7;
const SKB_STORE_BYTES: i32 = 9;
const SKB_LOAD_BYTES: i32 = 26;
const TC_ACT_OK: i32 = 0;
const TC_ACT_SHOT: i32 = 2;
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;
const R6: u8 = 6;
const R7: u8 = 7;
const R8: u8 = 8;
const R9: u8 = 9;
const R10: u8 = 10;
const MOV_IMM: u8 = 0xb7;
const MOV_REG: u8 = 0xbf;
const ADD_IMM: u8 = 0x07;
const ADD_REG: u8 = 0x0f;
const SUB_IMM: u8 = 0x17;
const SUB_REG: u8 = 0x1f;
const AND_IMM: u8 = 0x57;
const XOR_REG: u8 = 0xaf;
const MOD_REG: u8 = 0x9f;
const LSH_IMM: u8 = 0x67;
const LSH_REG: u8 = 0x6f;
const RSH_IMM: u8 = 0x77;
const TO_BIG_ENDIAN: u8 = 0xdc;
const B1: u8 = 0x71;
const B2: u8 = 0x69;
const B8: u8 = 0x79;
const STORE_1: u8 = 0x73;
const STORE_8: u8 = 0x7b;
const STORE_IMM_4: u8 = 0x62;
const LOAD_MAP: u8 = 0x18;
const JEQ_IMM: u8 = 0x15;
const JNE_IMM: u8 = 0x55;
const JSLE_IMM: u8 = 0xd5;
const JGE_REG: u8 = 0x3d;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

#[cfg(test)]
mod tests {
    use super::*;

    /// Jumps land on an instruction, never inside one of two words or behind the end.
    #[test]
    fn every_jump_lands_on_an_instruction() {
        for ipv6 in [false, true] {
            let code = code(ipv6, 3, 4);
            let op = |at: usize| code[at].to_ne_bytes()[0];
            for at in 0..code.len() {
                let bytes = code[at].to_ne_bytes();
                if bytes[0] & 7 == 5 && bytes[0] != CALL && bytes[0] != EXIT {
                    let offset = i16::from_ne_bytes([bytes[2], bytes[3]]);
                    let target = at as i64 + 1 + i64::from(offset);
                    let target = usize::try_from(target).expect("forward");
                    assert!(target < code.len(), "{at} jumps to {target}");
                    assert!(op(target) != 0, "{at} jumps into a wide instruction");
                }
            }
            assert_eq!(op(code.len() - 1), EXIT);
        }
    }
}
